package agentcheck_test

import (
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/agentcheck"
	"hadrain/internal/testpeer"
)

// Who has connected before the end is answered, also if nothing was read yet.
func TestQuestionsInFlightFinish(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	var asked atomic.Int64
	s, stop := serve(t, agentcheck.Config{Answer: func(q []byte) agentcheck.Answer {
		if asked.Add(1) == 1 { // the loop is busy while more connect
			entered <- struct{}{}
			<-leave
		}
		return respond(q)
	}}, l)
	var conns []net.Conn
	for i := range 20 {
		c := dial(t, l.Addr().String())
		if i%5 == 4 {
			send(t, c, "can") // and the rest later
		} else {
			send(t, c, "canary\n")
		}
		conns = append(conns, c)
		if i == 0 {
			<-entered
		}
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	close(leave)
	testpeer.WaitFor(t, "all to be accepted", func() (bool, string) { return s.Stats().Accepted == 20, "" })
	for i, c := range conns {
		if i%5 == 4 {
			send(t, c, "ary\n")
		}
		if got := line(t, c); got != "drain 100%\n" {
			t.Errorf("connection %d: %q, want drain", i, got)
		}
		c.Close()
	}
	<-stopped
}

func TestBeat(t *testing.T) {
	t.Parallel()
	s, _ := start(t, agentcheck.Config{})
	first := s.Beat()
	testpeer.WaitFor(t, "an idle server to turn", func() (bool, string) { return s.Beat().After(first), "" })
	if age := time.Since(s.Beat()); age > 5*time.Second {
		t.Errorf("the last beat was %v ago", age)
	}
}

// A loop that is stuck must not look alive: the watchdog depends on it.
func TestStuckLoopDoesNotBeat(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	s, addr := start(t, agentcheck.Config{Answer: func(q []byte) agentcheck.Answer {
		close(entered)
		<-leave
		return respond(q)
	}})
	fd, err := connect(sockaddr(t, addr))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hangUp(fd) }()
	if _, err := syscall.Write(fd, question); err != nil {
		t.Fatal(err)
	}
	<-entered
	last := s.Beat()
	testpeer.WaitFor(t, "two idle turns' time", func() (bool, string) { return time.Since(last) > 2500*time.Millisecond, "" })
	if beat := s.Beat(); !beat.Equal(last) {
		t.Errorf("a stuck loop turned at %v, last before %v", beat, last)
	}
	close(leave)
	testpeer.WaitFor(t, "the loop to turn again", func() (bool, string) { return s.Beat().After(last), "" })
}

// A flood that never lets the queue run empty does not keep the server from
// stopping.
func TestStopsInAFlood(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to := sockaddr(t, l.Addr().String())
	var last int
	another := func() { // the next one is there before this one is answered
		fd, err := connect(to)
		if err == nil {
			_, err = syscall.Write(fd, question)
		}
		if err != nil {
			t.Errorf("connecting: %v", err)
		}
		last = fd
	}
	another() // while nobody accepts yet
	flooded := make(chan struct{})
	n := 0
	s, stop := serve(t, agentcheck.Config{Answer: func(q []byte) agentcheck.Answer {
		old := last
		another()
		_ = hangUp(old)
		if n++; n == 100 {
			close(flooded)
		}
		return respond(q)
	}}, l)
	<-flooded
	stop()
	_ = hangUp(last)
	if s.Stats().Accepted < 100 {
		t.Errorf("%d accepted, want at least 100", s.Stats().Accepted)
	}
}
