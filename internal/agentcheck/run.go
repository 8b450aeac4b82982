package agentcheck

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// newLoop takes over l.
func newLoop(s *Server, l net.Listener) (*loop, error) {
	filer, ok := l.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("listening on %s: a %T has no descriptor", l.Addr(), l)
	}
	file, err := filer.File()
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", l.Addr(), err)
	}
	made := &loop{s: s, listener: l, file: file, left: -1}
	made.accept = made.take
	made.beat.Store(time.Now().UnixNano())
	return made, nil
}

// run accepts until ctx ends or the listener breaks.
func (l *loop) run(ctx context.Context) error {
	defer l.finish()
	conn, err := l.file.SyscallConn()
	if err != nil {
		return l.failed(err)
	}
	stop := context.AfterFunc(ctx, func() {
		l.stopping.Store(true)
		// It fails only once the file is closed: the loop has stopped then.
		_ = l.file.SetReadDeadline(time.Unix(1, 0))
	})
	defer stop()
	for {
		if err := l.file.SetReadDeadline(l.turn(time.Now())); err != nil {
			return l.failed(err)
		}
		if ctx.Err() != nil { // asked after setting the deadline: it may have undone that of stop
			return l.drain(conn)
		}
		if err := conn.Read(l.accept); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return l.failed(err)
		}
		if l.broken != nil {
			return l.failed(l.broken)
		}
		l.pause(ctx)
	}
}

// turn does what is due and returns when something will be due again.
func (l *loop) turn(now time.Time) time.Time {
	l.beat.Store(now.UnixNano())
	if len(l.answered) == 0 {
		return now.Add(beatInterval)
	}
	if now.Sub(l.swept) >= sweepInterval {
		l.sweep(now)
	}
	return now.Add(sweepInterval)
}

// pause waits a little if no more connections can be had for now.
func (l *loop) pause(ctx context.Context) {
	if l.exhausted == nil {
		if l.paused {
			l.paused = false
			l.s.cfg.Log.Info("accepting agent checks again", "listener", l.listener.Addr().String())
		}
		return
	}
	if !l.paused {
		l.paused = true
		l.s.cfg.Log.Error("accepting agent checks paused; raise LimitNOFILE or lower --max-connections",
			"listener", l.listener.Addr().String(), "error", l.exhausted)
	}
	l.exhausted = nil
	timer := time.NewTimer(exhaustedPause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// drain takes who is waiting already. It goes past the poller, whose deadline
// has passed.
func (l *loop) drain(conn syscall.RawConn) error {
	l.left = maxBacklog
	if err := conn.Control(func(fd uintptr) { l.take(fd) }); err != nil {
		return l.failed(err)
	}
	if l.broken != nil {
		return l.failed(l.broken)
	}
	return nil
}

// finish closes the listener, and the answered connections after their peers.
func (l *loop) finish() {
	// There is nothing to be lost by closing a listener that is done with.
	_ = l.file.Close()
	_ = l.listener.Close()
	for ; len(l.answered) > 0; time.Sleep(sweepInterval / 4) {
		l.sweep(time.Now())
	}
}

func (l *loop) failed(err error) error {
	return fmt.Errorf("accepting on %s: %w", l.listener.Addr(), err)
}
