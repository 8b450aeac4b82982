package tests_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

// An exchange is one line of agent-send and the only right reply to it.
type exchange struct{ line, reply string }

// askers ask as HAProxy does, a million times: system calls of their own, for a
// net.Conn costs more than the check.
type askers struct {
	to        syscall.SockaddrInet4
	questions []exchange
	total     int64 // how many checks
	timeout   syscall.Timeval

	started  atomic.Int64
	mu       sync.Mutex
	failures []failure
}

// A failure is a check without the right reply.
type failure struct {
	from, to time.Time
	err      error
}

func newAskers(t *testing.T, addr net.Addr, total int, questions []exchange) *askers {
	t.Helper()
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		t.Fatalf("asking %v: not a TCP address", addr)
	}
	return &askers{
		to:        syscall.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(tcp.IP.To4())},
		questions: questions, total: int64(total),
		timeout: syscall.NsecToTimeval(testpeer.Timeout(t).Nanoseconds()),
	}
}

// run asks from so many goroutines, one check at a time each, and returns when
// all is asked. It calls at, if any, after every so many checks, one at a time.
func (a *askers) run(goroutines int, every int64, at func()) {
	var wg sync.WaitGroup
	var atOnce sync.Mutex
	for range goroutines {
		wg.Go(func() {
			reply := make([]byte, 128)
			for n := a.started.Add(1); n <= a.total; n = a.started.Add(1) {
				a.check(a.questions[n%int64(len(a.questions))], reply)
				if at != nil && n%every == 0 {
					atOnce.Lock()
					at()
					atOnce.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

func (a *askers) check(q exchange, buf []byte) {
	from := time.Now()
	reply, err := a.ask(q.line, buf)
	if err == nil && string(reply) != q.reply {
		err = fmt.Errorf("asking %q: got %q, want %q", q.line, reply, q.reply)
	}
	if err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.failures = append(a.failures, failure{from, time.Now(), err})
	}
}

// errCut is a connection that ended before the reply.
var errCut = errors.New("connection ended without a reply")

// ask leaves it to the question to finish the handshake, so that it is there
// when the connection is accepted, and closes with a reset.
func (a *askers) ask(line string, buf []byte) ([]byte, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a socket: %w", err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := errors.Join(
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 0),
		syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1}),
		syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &a.timeout),
	); err != nil {
		return nil, fmt.Errorf("setting up a socket: %w", err)
	}
	to := a.to // Connect writes into it
	if err := syscall.Connect(fd, &to); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if err := syscall.Sendto(fd, []byte(line), syscall.MSG_NOSIGNAL, nil); err != nil {
		return nil, cut(err)
	}
	return receive(fd, buf)
}

// receive reads up to the newline.
func receive(fd int, buf []byte) ([]byte, error) {
	for got := 0; ; {
		n, err := syscall.Read(fd, buf[got:])
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return nil, cut(err)
		case n == 0 && got == 0:
			return nil, errCut
		case n == 0:
			return nil, fmt.Errorf("reply %q without its newline", buf[:got])
		}
		if got += n; bytes.IndexByte(buf[:got], '\n') >= 0 {
			return buf[:got], nil
		}
	}
}

func cut(err error) error {
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return errCut
	}
	return fmt.Errorf("asking: %w", err)
}
