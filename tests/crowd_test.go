package tests_test

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

// crowdVariable makes the test binary a crowd: "ADDRESS COUNT".
const crowdVariable = "HADRAIN_TEST_CROWD"

func TestMain(m *testing.M) {
	if what := os.Getenv(crowdVariable); what != "" {
		if err := runCrowd(what); err != nil {
			fmt.Fprintln(os.Stderr, "crowd:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// startCrowd starts a process that holds count connections, and returns when it
// does. stop ends it.
func startCrowd(t *testing.T, addr string, count int) (stop func()) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", crowdVariable, addr, count))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := testpeer.Start(t, cmd)
	p.WaitOutput(t, "holding")
	return func() {
		if err := stdin.Close(); err != nil {
			t.Error(err)
		}
		if code := p.WaitExit(t); code != 0 {
			t.Errorf("the crowd ended with status %d", code)
		}
	}
}

// A crowd holds connections that never ask: half of them are silent, the others
// send a byte now and then, of a line that does not end.
type crowd struct {
	to    syscall.SockaddrInet4
	epoll int
	open  map[int]bool // by descriptor: whether it sends
}

// crowdPace is how many connections a crowd makes a second, at most, for those
// that the responder has closed.
const crowdPace = 5000

func runCrowd(what string) error {
	var addr string
	var count int
	if _, err := fmt.Sscan(what, &addr, &count); err != nil {
		return err
	}
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	c := &crowd{to: syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}, open: map[int]bool{}}
	if c.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return err
	}
	for len(c.open) < count {
		if err := c.connect(); err != nil {
			return err
		}
	}
	fmt.Println("holding")
	var end atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test closes it
		end.Store(true)
	}()
	return c.hold(count, &end)
}

// hold makes a new connection for each that the responder closed.
func (c *crowd) hold(count int, end *atomic.Bool) error {
	start, dripped, made := time.Now(), time.Now(), 0
	for !end.Load() {
		if err := c.reap(); err != nil {
			return err
		}
		for ; len(c.open) < count && made < int(time.Since(start).Seconds()*crowdPace); made++ {
			if err := c.connect(); err != nil {
				return err
			}
		}
		if time.Since(dripped) > 50*time.Millisecond {
			dripped = time.Now()
			c.drip()
		}
	}
	return nil
}

func (c *crowd) connect() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	to := c.to // Connect writes into it
	if err := syscall.Connect(fd, &to); err != nil && !errors.Is(err, syscall.EINPROGRESS) {
		return fmt.Errorf("connecting: %w", err)
	}
	c.open[fd] = len(c.open)%2 == 1
	return syscall.EpollCtl(c.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP, Fd: int32(fd)})
}

// reap closes what the responder has closed or answered, with a reset: a crowd
// that left its addresses in TIME_WAIT would soon have none.
func (c *crowd) reap() error {
	var events [512]syscall.EpollEvent
	n, err := syscall.EpollWait(c.epoll, events[:], 10)
	if err != nil && !errors.Is(err, syscall.EINTR) {
		return err
	}
	for _, e := range events[:max(n, 0)] {
		fd := int(e.Fd)
		delete(c.open, fd)
		if err := errors.Join(syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1}), syscall.Close(fd)); err != nil {
			return err
		}
	}
	return nil
}

func (c *crowd) drip() {
	for fd, sends := range c.open {
		if sends {
			// Being closed meanwhile is what these peers are for.
			_ = syscall.Sendto(fd, []byte("k"), syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT, nil)
		}
	}
}
