package agentcheck_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/agentcheck"
	"hadrain/internal/testpeer"
)

// ended waits for the end of the stream, reset or not, and returns what came.
func ended(t *testing.T, c net.Conn) string {
	t.Helper()
	b, err := io.ReadAll(c)
	if os.IsTimeout(err) {
		t.Fatalf("the connection stays open; so far: %q", b)
	}
	return string(b)
}

func TestSilentPeerIsClosed(t *testing.T) {
	t.Parallel()
	s, addr := start(t, agentcheck.Config{})
	begin := time.Now()
	if got := ended(t, dial(t, addr)); got != "" {
		t.Errorf("a silent peer got %q, want nothing", got)
	}
	if took := time.Since(begin); took < 900*time.Millisecond || took > 5*time.Second {
		t.Errorf("closed after %v, want about a second", took)
	}
	waitLost(t, s, agentcheck.LostSilent, 1)
}

func waitLost(t *testing.T, s *agentcheck.Server, reason agentcheck.LostReason, want uint64) {
	t.Helper()
	testpeer.WaitFor(t, "connections lost: "+reason.String(), func() (bool, string) {
		stats := s.Stats()
		return stats.Lost[reason] == want, strings.TrimSpace(reasons(stats))
	})
}

func reasons(stats agentcheck.Stats) string {
	var b strings.Builder
	for r, n := range stats.Lost {
		b.WriteString(r.String() + "=" + time.Duration(n).String() + " ")
	}
	return b.String()
}

func TestNoNewlineComesAfterAPause(t *testing.T) {
	t.Parallel()
	_, addr := start(t, agentcheck.Config{})
	begin := time.Now()
	if got := ask(t, addr, "canary"); got != "no-newline\n" {
		t.Errorf("got %q, want no-newline", got)
	}
	if took := time.Since(begin); took < 90*time.Millisecond || took > 900*time.Millisecond {
		t.Errorf("answered after %v, want about 100 ms", took)
	}
}

// A peer that sends one byte now and then must not hold a connection for ever.
func TestSlowWriterIsBounded(t *testing.T) {
	t.Parallel()
	_, addr := start(t, agentcheck.Config{})
	c := dial(t, addr)
	begin := time.Now()
	stop := make(chan struct{})
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		tick := time.NewTicker(30 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if _, err := io.WriteString(c, "k"); err != nil {
					return
				}
			}
		}
	}()
	if got := line(t, c); got != "no-newline\n" {
		t.Errorf("got %q, want no-newline", got)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("answered after %v, want about a second", took)
	}
	close(stop)
	<-wrote
}

func TestHalfClosedPeers(t *testing.T) {
	t.Parallel()
	_, addr := start(t, agentcheck.Config{})
	for sent, want := range map[string]string{"canary\n": "drain 100%\n", "canary": "no-newline\n", "": ""} {
		c := dial(t, addr)
		send(t, c, sent)
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := ended(t, c); got != want {
			t.Errorf("after %q and the end of the stream: %q, want %q", sent, got, want)
		}
	}
}

// HAProxy has the answer and keeps the connection open: it is closed in the end.
func TestServerClosesAtLast(t *testing.T) {
	t.Parallel()
	s, addr := start(t, agentcheck.Config{})
	for _, pieces := range [][]string{{"canary\n"}, {"can", "ary\n"}} {
		c := dial(t, addr)
		for _, piece := range pieces {
			send(t, c, piece)
		}
		if got := ended(t, c); got != "drain 100%\n" {
			t.Errorf("got %q, want the answer and then the end", got)
		}
	}
	testpeer.WaitFor(t, "no open connection", func() (bool, string) {
		return s.Stats().Open == 0, time.Duration(s.Stats().Open).String()
	})
}

func TestResetsAreCounted(t *testing.T) {
	t.Parallel()
	s, addr := start(t, agentcheck.Config{})
	c := dial(t, addr)
	send(t, c, "can")
	testpeer.WaitFor(t, "the connection", func() (bool, string) { return s.Stats().Accepted == 1, "" })
	reset(t, c)
	waitLost(t, s, agentcheck.LostReset, 1)
	if got := ask(t, addr, "canary\n"); got != "drain 100%\n" {
		t.Errorf("afterwards: %q", got)
	}
}

// reset closes c as HAProxy does.
func reset(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOldestSilentPeerMakesRoom(t *testing.T) {
	t.Parallel()
	const most = 8
	s, addr := start(t, agentcheck.Config{MaxConnections: most})
	var silent []net.Conn
	for range most {
		silent = append(silent, dial(t, addr))
	}
	testpeer.WaitFor(t, "all to be accepted", func() (bool, string) { return s.Stats().Accepted == most, "" })
	if got := ask(t, addr, "canary\n"); got != "drain 100%\n" {
		t.Errorf("at the limit: %q, want drain", got)
	}
	if got := ended(t, silent[0]); got != "" {
		t.Errorf("the oldest got %q", got)
	}
	stats := s.Stats()
	if stats.Lost[agentcheck.LostEvicted] != 1 || stats.Open > most {
		t.Errorf("evicted %d, open %d, want 1 and at most %d", stats.Lost[agentcheck.LostEvicted], stats.Open, most)
	}
	// The youngest is still served.
	send(t, silent[most-1], "canary\n")
	if got := line(t, silent[most-1]); got != "drain 100%\n" {
		t.Errorf("the youngest got %q, want its answer", got)
	}
}

func TestAnsweredPeersMakeRoomToo(t *testing.T) {
	t.Parallel()
	s, addr := start(t, agentcheck.Config{MaxConnections: 4})
	for range 40 { // each keeps its connection open
		c := dial(t, addr)
		send(t, c, "canary\n")
		if got := line(t, c); got != "drain 100%\n" {
			t.Fatalf("got %q, want drain", got)
		}
		if open := s.Stats().Open; open > 4 {
			t.Fatalf("%d open, want at most 4", open)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(testpeer.Dir(t), "agent")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, agentcheck.Config{}, l)
	for _, pieces := range [][]string{{"canary\n"}, {"can", "ary\n"}} {
		if got := ask(t, path, pieces...); got != "drain 100%\n" {
			t.Errorf("asking %q: %q, want drain", pieces, got)
		}
	}
}

// What other peers send meanwhile must not end up in a split question.
func TestSplitQuestionIsItsOwn(t *testing.T) {
	t.Parallel()
	s, addr := start(t, agentcheck.Config{})
	for i := range uint64(20) {
		c := dial(t, addr)
		send(t, c, "can")
		testpeer.WaitFor(t, "the first half", func() (bool, string) { return s.Stats().Accepted == 2*i+1, "" })
		checkOnce(t, sockaddr(t, addr))
		send(t, c, "ary\n")
		if got := line(t, c); got != "drain 100%\n" && got != "no-newline\n" { // the latter from a stalled machine
			t.Errorf("got %q, want drain", got)
		}
	}
}
