package agentcheck

import (
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// A loop accepts from one listener and answers what arrives whole. It makes its
// system calls itself, on the raw descriptors: none of them blocks, and without
// the scheduler's bookkeeping around each a check costs a quarter of what a
// goroutine with a net.Conn costs.
type loop struct {
	s        *Server
	listener net.Listener
	file     *os.File // its descriptor, non-blocking and known to the runtime's poller
	accept   func(uintptr) bool

	buf      [MaxQuestion]byte
	answered []answered // peers that have not closed yet, oldest first
	swept    time.Time  // when answered was looked through last
	polled   []pollFD   // the same connections, for the kernel
	beat     atomic.Int64

	stopping  atomic.Bool
	left      int   // how many more to accept, once stopping; before that -1, no limit
	exhausted error // no descriptor or no memory for another connection
	paused    bool  // because of that
	broken    error // this is no listener any more
}

type answered struct {
	fd int
	at time.Time
}

// take is what the poller calls when somebody may be waiting. It reports
// whether the loop is to turn, instead of waiting for the next one.
func (l *loop) take(listener uintptr) bool {
	for l.left != 0 {
		fd, _, errno := syscall.RawSyscall6(syscall.SYS_ACCEPT4, listener, 0, 0, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0, 0)
		switch errno {
		case 0:
			l.serve(int(fd))
			if l.left > 0 {
				l.left--
			} else if l.stopping.Load() {
				l.left = maxBacklog // more may come faster than they are answered
			}
		case syscall.EAGAIN:
			return l.left >= 0
		case syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM:
			// The poller tells only of the next arrival, so the loop has to
			// come back by itself.
			l.exhausted = errno
			return true
		case syscall.EBADF, syscall.EINVAL, syscall.ENOTSOCK, syscall.EOPNOTSUPP, syscall.EFAULT:
			l.broken = errno
			return true
		}
		// Anything else is about one connection that is no more: ECONNABORTED,
		// and what accept(2) passes on from the network.
	}
	return true
}

// serve answers the connection fd if its question is there already.
func (l *loop) serve(fd int) {
	now := time.Now()
	l.beat.Store(now.UnixNano())
	if now.Sub(l.swept) >= sweepInterval {
		l.sweep(now)
	}
	l.s.accepted.Add(1)
	if l.s.open.Add(1) > l.s.limit {
		l.makeRoom(now)
	}
	n, errno := read(fd, l.buf[:])
	line, whole := cutLine(l.buf[:n])
	switch {
	case whole:
		if l.s.reply(fd, line, l.s.cfg.Answer(line), now) {
			l.answered = append(l.answered, answered{fd, now})
			return
		}
		l.close(fd)
	case n > 0 || errno == syscall.EAGAIN:
		l.s.listen(fd, l.buf[:n], now)
	default:
		l.s.lose(lostEarly(errno))
		l.close(fd)
	}
}

// sweep closes the answered connections whose peers have closed theirs, or did
// not in closeTimeout.
func (l *loop) sweep(now time.Time) {
	l.swept = now
	l.poll()
	kept := l.answered[:0]
	for i, a := range l.answered {
		if l.polled[i].revents&pollGone == 0 && now.Sub(a.at) < closeTimeout {
			kept = append(kept, a)
			continue
		}
		l.close(a.fd)
	}
	l.answered = kept
}

// poll asks once, for all answered connections, which peers have closed theirs.
// A read of each would be a system call a check.
func (l *loop) poll() {
	l.polled = l.polled[:0]
	for _, a := range l.answered {
		l.polled = append(l.polled, pollFD{fd: int32(a.fd), events: pollRDHUP})
	}
	if len(l.polled) == 0 {
		return
	}
	var atOnce syscall.Timespec
	// If it fails it has told of nobody, and the next sweep asks again.
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&l.polled[0])), uintptr(len(l.polled)),
		uintptr(unsafe.Pointer(&atOnce)), 0, 0, 0)
}

// pollFD is struct pollfd of poll(2).
type pollFD struct {
	fd              int32
	events, revents int16
}

const (
	pollRDHUP = 0x2000                        // the peer has closed, or its sending side
	pollGone  = pollRDHUP | 0x8 | 0x10 | 0x20 // POLLERR, POLLHUP, POLLNVAL: a reset, the end, no descriptor
)

// makeRoom closes connections until there are no more than allowed, the one
// just accepted among them. First the oldest without a complete question goes.
// Closing an answered one early takes nothing from it but costs a TIME_WAIT.
func (l *loop) makeRoom(now time.Time) {
	for l.s.open.Load() > l.s.limit {
		if l.s.evict() {
			continue
		}
		if l.sweep(now); l.s.open.Load() <= l.s.limit {
			return
		}
		oldest := (len(l.answered) + 3) / 4
		if oldest == 0 {
			return
		}
		for _, a := range l.answered[:oldest] {
			l.close(a.fd)
		}
		l.answered = l.answered[:copy(l.answered, l.answered[oldest:])]
	}
}

func (l *loop) close(fd int) {
	// The descriptor is gone whatever close says (close(2)).
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd), 0, 0)
	l.s.open.Add(-1)
}

// read returns 0 and no error at the end of the stream.
func read(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// write sends the whole of text in one piece or fails: a reply in two segments
// is misread by HAProxy before 3.2.20 (its commit 57b526e02).
func write(fd int, text string) bool {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.StringData(text))),
		uintptr(len(text)), syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT, 0, 0)
	return errno == 0 && int(n) == len(text)
}
