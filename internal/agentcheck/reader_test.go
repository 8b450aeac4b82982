package agentcheck_test

import (
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"hadrain/internal/agentcheck"
	"hadrain/internal/testpeer"
)

// A reply is one write: HAProxy before 3.2.20 misreads one in two pieces. On a
// socket that keeps the borders of messages, each write is read by itself.
func TestReplyIsOneWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(testpeer.Dir(t), "agent")
	l, err := net.Listen("unixpacket", path)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, agentcheck.Config{}, l)
	for _, tc := range []struct {
		sent []string
		want string
	}{
		{[]string{"+up canary\n"}, "up drain 100%\n"},
		{[]string{"+up can", "ary\n"}, "up drain 100%\n"},
		{[]string{"canary"}, "no-newline\n"},
		{[]string{"\n"}, "refused\n"},
	} {
		c := dialNetwork(t, "unixpacket", path)
		for _, piece := range tc.sent {
			send(t, c, piece)
		}
		var b [256]byte
		if n, err := c.Read(b[:]); err != nil || string(b[:n]) != tc.want {
			t.Errorf("%q: the first message is %q, %v, want %q", tc.sent, b[:n], err, tc.want)
		}
		if n, err := c.Read(b[:]); err == nil {
			t.Errorf("%q: another message: %q", tc.sent, b[:n])
		}
	}
}

// Peers who never read hold nobody up, and are closed in the end. What does not
// fit into the socket at once is not sent later.
func TestPeersThatDoNotRead(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 64<<20) // more than a socket takes
	s, addr := start(t, agentcheck.Config{Answer: func(line []byte) agentcheck.Answer {
		if strings.HasPrefix(string(line), "large") {
			return agentcheck.Answer{Reply: large}
		}
		return respond(line)
	}})
	const peers = 4
	for range peers {
		send(t, dial(t, addr), "canary\n")
		send(t, dial(t, addr), "large\n")
		c := dial(t, addr)
		send(t, c, "large")
		send(t, c, " canary\n")
	}
	testpeer.WaitFor(t, "all to be accepted", func() (bool, string) { return s.Stats().Accepted == 3*peers, "" })
	if got := ask(t, addr, "canary\n"); got != "drain 100%\n" {
		t.Errorf("beside them: %q, want drain", got)
	}
	waitLost(t, s, agentcheck.LostReply, 2*peers)
	testpeer.WaitFor(t, "no open connection", func() (bool, string) { return s.Stats().Open == 0, reasons(s.Stats()) })
}

// Nothing of this is a change of state: the log stays empty.
func TestPeersAreNotLogged(t *testing.T) {
	t.Parallel()
	var log testpeer.Output
	s, addr := start(t, agentcheck.Config{MaxConnections: 4, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	for _, sent := range []string{"", "can", "canary\n", "\x1b[31m\n", "-\u202e\n"} {
		c := dial(t, addr)
		send(t, c, sent)
		reset(t, c)
	}
	made := uint64(5)
	testpeer.WaitFor(t, "connections to be evicted", func() (bool, string) {
		for range 8 { // more than there is room for, unless this takes so long that the first are answered
			send(t, dial(t, addr), "can")
			made++
		}
		stats := s.Stats()
		return stats.Lost[agentcheck.LostEvicted] > 0, reasons(stats)
	})
	testpeer.WaitFor(t, "connections to end", func() (bool, string) {
		stats := s.Stats()
		return stats.Accepted == made && stats.Open == 0, reasons(stats)
	})
	if got := log.String(); got != "" {
		t.Errorf("the log:\n%s", got)
	}
}
