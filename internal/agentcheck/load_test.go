package agentcheck_test

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"hadrain/internal/agentcheck"
	"hadrain/internal/testpeer"
)

func TestOutOfDescriptors(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), filesVariable+"=20")
	cmd.ExtraFiles = []*os.File{file}
	p := testpeer.Start(t, cmd)
	for range 60 { // silent for a second each, far more than there are descriptors
		dial(t, l.Addr().String())
	}
	p.WaitOutput(t, "paused")
	for range 5 {
		if got := ask(t, l.Addr().String(), "canary\n"); got != "drain 100%\n" {
			t.Errorf("got %q, want drain", got)
		}
	}
	p.WaitOutput(t, "again")
	if n := strings.Count(p.Output(), "\n"); n > 10 {
		t.Errorf("%d lines of log, want one for each change", n)
	}
}

// Two listeners, many askers, hostile ones among them: every answer is right,
// and everything is closed in the end.
func TestManyPeers(t *testing.T) {
	t.Parallel()
	var listeners []net.Listener
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
	}
	s, stop := serve(t, agentcheck.Config{MaxConnections: 64}, listeners...)
	var hostile, askers sync.WaitGroup
	done := make(chan struct{})
	for i := range 4 {
		hostile.Go(func() { annoy(t, listeners[i%2].Addr().String(), i, done) })
	}
	for i := range 4 {
		askers.Go(func() {
			to := sockaddr(t, listeners[i%2].Addr().String())
			for range 500 {
				checkOnce(t, to)
			}
		})
	}
	askers.Wait()
	close(done)
	hostile.Wait()
	stop()
	if got := s.Stats().Accepted; got < 2000 {
		t.Errorf("%d connections accepted, want at least 2000", got)
	}
}

// annoy connects again and again and sends nothing, half a line, far too much,
// or a question that it resets at once.
func annoy(t *testing.T, addr string, how int, done <-chan struct{}) {
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	junk := []byte(strings.Repeat("\x00k ", 4096))
	for {
		select {
		case <-done:
			return
		default:
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Errorf("connecting: %v", err)
			return
		}
		if open = append(open, c); len(open) > 100 {
			open[0].Close()
			open = open[1:]
		}
		// Being closed by the server is what these peers are for.
		switch how {
		case 1:
			_, _ = c.Write([]byte("can"))
		case 2:
			_, _ = c.Write(junk)
		case 3:
			_, _ = c.Write([]byte("canary\n"))
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}
}

// HAProxy closes with a reset, unless it has seen that its peer closed first:
// then it closes in order, and the peer keeps the connection in TIME_WAIT.
func TestLeavesNoTimeWait(t *testing.T) {
	_, addr := start(t, agentcheck.Config{})
	to := sockaddr(t, addr)
	first := 0 // how often the server closed first
	for range 300 {
		fd, err := connect(to)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := syscall.Write(fd, question); err != nil {
			t.Fatal(err)
		}
		if n, err := syscall.Read(fd, received[:]); err != nil || n == 0 {
			t.Fatalf("no answer: %v", err)
		}
		end := hangUp
		if n, _, err := syscall.Recvfrom(fd, received[:], syscall.MSG_DONTWAIT); n == 0 && err == nil {
			first++
			end = syscall.Close
		}
		if err := end(fd); err != nil {
			t.Fatal(err)
		}
	}
	// A stalled machine may be late for the half second now and then.
	if n := timeWaits(t, to.Port); first > 30 || n > 30 {
		t.Errorf("closed first %d times and left %d connections in TIME_WAIT by 300 checks, want none", first, n)
	}
}
