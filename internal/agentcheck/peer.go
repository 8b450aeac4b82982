package agentcheck

import (
	"container/list"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// A peer is a connection whose question did not arrive whole: somebody with a
// terminal, a split line, a port scanner. It has a goroutine.
type peer struct {
	file  *os.File // non-blocking, known to the runtime's poller
	sent  []byte   // what has arrived of the question
	since time.Time

	// The place in one of the lists of peers; nil once it was evicted. Guarded
	// by the mutex of peers.
	place *list.Element
}

// listen gives the connection fd to a goroutine. have arrived already.
func (s *Server) listen(fd int, have []byte, since time.Time) {
	p := &peer{file: os.NewFile(uintptr(fd), "peer"), sent: append([]byte(nil), have...), since: since}
	s.peers.add(p)
	s.wg.Go(func() {
		reason, ok := s.converse(p)
		if !ok {
			s.lose(reason)
		}
		if s.peers.remove(p) {
			s.open.Add(-1)
		}
		_ = p.file.Close() // nothing is buffered, and an evicted one is closed
	})
}

// converse reads the question, answers, and waits for the peer to close. If
// there was no answer it says why.
func (s *Server) converse(p *peer) (reason LostReason, ok bool) {
	line, whole, err := p.readQuestion()
	if err != nil || len(p.sent) == 0 {
		return p.lostReason(err), false
	}
	if !s.peers.promote(p) {
		return LostEvicted, false
	}
	a := noNewline
	switch {
	case whole:
		a = s.cfg.Answer(line)
	case len(p.sent) == MaxQuestion:
		a, line = refused, nil
	default:
		line = nil
	}
	if !p.write(a.Reply) {
		return LostReply, false
	}
	now := time.Now()
	s.cfg.Answered(line, a, now, now.Sub(p.since))
	p.awaitClose(now)
	return 0, true
}

// readQuestion reads until the line ends, or will not any more: too long, half
// closed, or late.
func (p *peer) readQuestion() (line []byte, whole bool, err error) {
	b := make([]byte, 512)
	for {
		if line, whole = cutLine(p.sent); whole || len(p.sent) == MaxQuestion {
			return line, whole, nil
		}
		if err := p.file.SetReadDeadline(p.deadline(time.Now())); err != nil {
			return nil, false, err
		}
		n, err := p.file.Read(b[:min(len(b), MaxQuestion-len(p.sent))])
		p.sent = append(p.sent, b[:n]...)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrDeadlineExceeded):
			return nil, false, nil
		case err != nil:
			return nil, false, err
		}
	}
}

func (p *peer) deadline(now time.Time) time.Time {
	end := p.since.Add(silentTimeout)
	if pause := now.Add(newlineTimeout); len(p.sent) > 0 && pause.Before(end) {
		return pause
	}
	return end
}

func (p *peer) lostReason(err error) LostReason {
	switch {
	case err == nil:
		return LostSilent
	case errors.Is(err, os.ErrClosed):
		return LostEvicted
	}
	return LostReset
}

func (p *peer) write(text string) (ok bool) {
	conn, err := p.file.SyscallConn()
	if err != nil {
		return false
	}
	err = conn.Control(func(fd uintptr) { ok = write(int(fd), text) })
	return err == nil && ok
}

// awaitClose drops what the peer still sends.
func (p *peer) awaitClose(now time.Time) {
	if p.file.SetReadDeadline(now.Add(closeTimeout)) != nil {
		return
	}
	var b [512]byte
	for {
		if _, err := p.file.Read(b[:]); err != nil {
			return
		}
	}
}

// peers are the connections that have a goroutine each.
type peers struct {
	mu       sync.Mutex
	asking   list.List // of *peer, without a complete question, oldest first
	answered list.List // of *peer, oldest first
}

func (ps *peers) add(p *peer) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.place = ps.asking.PushBack(p)
}

// promote reports whether p, whose question is complete, is still there.
func (ps *peers) promote(p *peer) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p.place == nil {
		return false
	}
	ps.asking.Remove(p.place)
	p.place = ps.answered.PushBack(p)
	return true
}

// remove reports whether p was still there.
func (ps *peers) remove(p *peer) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p.place == nil {
		return false
	}
	// Remove does nothing for an element of another list.
	ps.asking.Remove(p.place)
	ps.answered.Remove(p.place)
	p.place = nil
	return true
}

// oldest takes out the peer that is to make room; nil if there is none.
func (ps *peers) oldest() *peer {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, l := range []*list.List{&ps.asking, &ps.answered} {
		if front := l.Front(); front != nil {
			p, _ := l.Remove(front).(*peer)
			p.place = nil
			return p
		}
	}
	return nil
}

// evict closes the peer that is to make room, and reports whether there was one.
func (s *Server) evict() bool {
	p := s.peers.oldest()
	if p == nil {
		return false
	}
	// Close returns once the descriptor is free.
	_ = p.file.Close()
	s.open.Add(-1)
	return true
}

// lostEarly is for a connection that had nothing to read at first.
func lostEarly(errno syscall.Errno) LostReason {
	if errno == 0 {
		return LostSilent
	}
	return LostReset
}
