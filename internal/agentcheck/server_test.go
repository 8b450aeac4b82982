package agentcheck_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"hadrain/internal/agentcheck"
	"hadrain/internal/desired"
)

var states = map[string]desired.State{
	"web/a": desired.Ready, "web/b": desired.Maint, "canary": desired.Drain, "held": desired.Hold, "typo": desired.Unset, `x\ny`: desired.Maint,
}

func lookup(key []byte) (desired.State, bool) { s, ok := states[string(key)]; return s, ok }

func respond(line []byte) agentcheck.Answer { return agentcheck.Respond(line, 0, lookup) }

// timeout bounds a hang; it is no expectation.
const timeout = 20 * time.Second

// start serves on a loopback port until the test ends.
func start(t testing.TB, cfg agentcheck.Config) (*agentcheck.Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := serve(t, cfg, l)
	return s, l.Addr().String()
}

// serve serves on l until the test ends or stop is called, which returns when
// the server has stopped.
func serve(t testing.TB, cfg agentcheck.Config, l ...net.Listener) (s *agentcheck.Server, stop func()) {
	t.Helper()
	if cfg.Answer == nil {
		cfg.Answer = respond
	}
	s, err := agentcheck.New(cfg, l...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-served:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(timeout):
			t.Error("Serve still runs")
		}
		if open := s.Stats().Open; open != 0 {
			t.Errorf("%d connections counted as open after the end", open)
		}
	}
	t.Cleanup(stop)
	return s, stop
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	return dialNetwork(t, network, addr)
}

func dialNetwork(t testing.TB, network, addr string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout(network, addr, timeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	return c
}

func send(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatalf("sending %q: %v", text, err)
	}
}

// line reads up to the first newline, or to the end of the stream.
func line(t testing.TB, c net.Conn) string {
	t.Helper()
	var b [256]byte
	n := 0
	for n == 0 || b[n-1] != '\n' {
		m, err := c.Read(b[n:])
		n += m
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("after %q: %v", b[:n], err)
		}
	}
	return string(b[:n])
}

// ask sends the pieces one after the other, each in a segment of its own, and
// returns the reply.
func ask(t testing.TB, addr string, pieces ...string) string {
	t.Helper()
	c := dial(t, addr)
	defer c.Close()
	for _, piece := range pieces {
		send(t, c, piece)
	}
	return line(t, c)
}

func TestAnswers(t *testing.T) {
	_, addr := start(t, agentcheck.Config{})
	for _, tc := range []struct {
		sent []string
		want string
	}{
		{[]string{"web/a canary\n"}, "ready 100%\n"},
		{[]string{"web/c canary\n"}, "drain 100%\n"},
		{[]string{"web/c canary\r\n"}, "drain 100%\n"},
		{[]string{"\tweb/c  \t canary \n"}, "drain 100%\n"},
		{[]string{`web/c canary\n`}, "drain 100%\n"},
		{[]string{`web/c canary\r\n`}, "drain 100%\n"},
		{[]string{`web/c canary\r`, `\n`}, "drain 100%\n"},
		{[]string{`web/c canary\r`}, "no-newline\n"},
		{[]string{"web/c can", "ary\n"}, "drain 100%\n"},
		{[]string{"w", "e", "b", "/", "b", "\n"}, "maint 100%\n"},
		{[]string{"web/b\nweb/a\n"}, "maint 100%\n"},
		{[]string{"x\\ny\n"}, "maint 100%\n"},
		{[]string{"+up canary\n"}, "up drain 100%\n"},
		{[]string{"-weight canary\n"}, "drain\n"},
		{[]string{"held\n"}, "hold\n"},
		{[]string{"nobody\n"}, "ready 100%\n"},
		{[]string{"can\x00ary\n"}, "ready 100%\n"},
		{[]string{"canary"}, "no-newline\n"},
		{[]string{"can", "ary"}, "no-newline\n"},
		{[]string{"\n"}, "refused\n"},
		{[]string{"+upp web/a\n"}, "refused\n"},
		{[]string{strings.Repeat("k ", 65) + "\n"}, "refused\n"},
		{[]string{strings.Repeat("k", 4095) + "\n"}, "ready 100%\n"},
		{[]string{strings.Repeat("k", 4096) + "\n"}, "refused\n"},
		{[]string{strings.Repeat("k", 4000), strings.Repeat("k", 4000), strings.Repeat("k", 4000)}, "refused\n"},
	} {
		t.Run(short(strings.Join(tc.sent, "|")), func(t *testing.T) {
			t.Parallel()
			if got := ask(t, addr, tc.sent...); got != tc.want {
				t.Errorf("%.60q: %q, want %q", tc.sent, got, tc.want)
			}
		})
	}
}

func short(s string) string { return s[:min(len(s), 20)] }
