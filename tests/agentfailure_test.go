package tests_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hadrain/internal/haproxy"
	"hadrain/internal/testpeer"
)

// An agentFailure is a way in which an agent does not answer.
type agentFailure struct {
	name  string
	serve func(t *testing.T, c *net.TCPConn) // after the question was read; nil: nobody listens

	// What "show stat" says of it. An empty status is that of the check before.
	status, desc string
	reasons      []string // one of them is part of last_agt, by version
}

func say(text string) func(*testing.T, *net.TCPConn) {
	return func(t *testing.T, c *net.TCPConn) {
		if _, err := io.WriteString(c, text); err != nil {
			t.Errorf("answering %q: %v", text, err)
		}
	}
}

// untilClosed waits for HAProxy to give up.
func untilClosed(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }

const noChange = "No status change"

var failures = []agentFailure{
	{"refused", nil, "L4CON", "Layer4 connection problem", []string{"Connection refused"}},
	{"closed", say(""), "L7RSP", "Layer7 invalid response", []string{"empty response"}},
	{"reset", func(_ *testing.T, c *net.TCPConn) { _ = c.SetLinger(0) }, "SOCKERR", "Socket error", []string{"Connection reset by peer", "ECONNRESET"}},
	{"silent", func(_ *testing.T, c *net.TCPConn) { untilClosed(c) }, "L7TOUT", "Layer7 timeout", []string{""}},
	{"half-a-line", func(t *testing.T, c *net.TCPConn) { say("maint")(t, c); untilClosed(c) }, "L7TOUT", "Layer7 timeout", []string{""}},
	{"cut", say("maint"), "", "", []string{"Ignoring incomplete line from agent"}},
	{"unknown-words", say("drained out\n"), "CHECKED", noChange, []string{"agent reports an error : drained"}},
	{"misspelt-weight", say("50 %\n"), "CHECKED", noChange, []string{"agent reports an error : 50"}},
	{"empty-line", say("\n"), "CHECKED", noChange, []string{""}},
	{"comment", say("# drain\n"), "CHECKED", noChange, []string{""}},
}

// prior are the states in which a server is when its agent begins to fail.
var prior = []struct {
	name, command string
	admin         haproxy.Admin
}{
	{"ready", "state ready", 0},
	{"drain", "state drain", haproxy.FDRAIN},
	{"maint", "state maint", haproxy.FMAINT},
}

// TestFailureModes is why a responder may die at any time: whatever an agent
// does except answer, HAProxy shows it and changes nothing.
func TestFailureModes(t *testing.T) {
	t.Parallel()
	testpeer.EachHAProxy(t, func(t *testing.T, binary string) {
		t.Parallel()
		var fails atomic.Bool
		h := testpeer.HAProxy(t, testpeer.HAProxyConfig{Binary: binary, Plain: true, Config: failureConfig(t, &fails)})
		expectHold(t, h)
		for _, f := range failures {
			for _, p := range prior {
				h.CLI(t, "set server "+f.name+"/"+p.name+" weight 30%")
				h.CLI(t, "set server "+f.name+"/"+p.name+" "+p.command)
			}
		}
		expectAll(t, h, "set by hand")
		fails.Store(true)
		for _, f := range failures {
			f.expect(t, h)
		}
		expectAll(t, h, "failing")

		fails.Store(false) // the agents are back, on hold: still nothing changes
		expectHold(t, h)
		expectAll(t, h, "answered again")
	})
}

// failureConfig starts an agent for each failure. They are on hold until fails
// is set.
func failureConfig(t *testing.T, fails *atomic.Bool) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("global\n max-spread-checks 50ms\ndefaults\n mode http\n timeout connect 1s\n timeout client 1s\n timeout server 1s\n")
	for _, f := range failures {
		port := 9 // nobody listens on
		if f.serve != nil {
			port = startAgent(t, func(c *net.TCPConn) {
				if fails.Load() {
					f.serve(t, c)
				} else {
					say("hold\n")(t, c)
				}
			})
		}
		fmt.Fprintf(&b, "backend %s\n", f.name)
		for _, p := range prior {
			fmt.Fprintf(&b, " server %s 127.0.0.1:1 weight 100 agent-check agent-inter 200ms agent-addr 127.0.0.1 agent-port %d agent-send \"x\\n\"\n", p.name, port)
		}
	}
	return b.String()
}

// startAgent hands every connection to serve once its question was read, and
// closes it after that. It returns the port.
func startAgent(t *testing.T, serve func(*net.TCPConn)) int {
	t.Helper()
	l := listen(t)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.AcceptTCP()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				t.Errorf("accepting a check: %v", err)
				return
			}
			running.Go(func() {
				defer c.Close()
				if _, err := bufio.NewReader(c).ReadString('\n'); err == nil {
					serve(c)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return l.Addr().(*net.TCPAddr).Port
}

// expect waits until HAProxy shows the failure for every server that has it.
func (f agentFailure) expect(t *testing.T, h *testpeer.HAProxyServer) {
	t.Helper()
	seen := map[string]bool{}
	testpeer.WaitFor(t, "HAProxy to show "+f.name, func() (bool, string) {
		stats, err := haproxy.Stats(t.Context(), h.StatsSocket())
		if err != nil {
			return false, err.Error()
		}
		var last string
		for _, s := range stats {
			if s.Proxy != f.name || s.Kind != haproxy.StatServer {
				continue
			}
			if f.shownBy(s) {
				seen[s.Name] = true
			} else if !seen[s.Name] {
				last = fmt.Sprintf("%s: %s, %q, %q", s.Name, s.AgentStatus, s.AgentDesc, s.LastAgent)
			}
		}
		return len(seen) == len(prior), last
	})
}

func (f agentFailure) shownBy(s haproxy.Stat) bool {
	if s.AgentRunning || f.status != "" && (s.AgentStatus != f.status || s.AgentDesc != f.desc) {
		return false
	}
	for _, reason := range f.reasons {
		if reason == "" && s.LastAgent == "" || reason != "" && strings.Contains(s.LastAgent, reason) {
			return true
		}
	}
	return false
}

// expectHold waits until every agent has answered hold.
func expectHold(t *testing.T, h *testpeer.HAProxyServer) {
	t.Helper()
	for _, f := range failures {
		if f.serve != nil {
			agentFailure{name: f.name, status: "CHECKED", desc: noChange, reasons: []string{": hold"}}.expect(t, h)
		}
	}
}

// expectAll fails for every server that is not as it was set by hand.
func expectAll(t *testing.T, h *testpeer.HAProxyServer, when string) {
	t.Helper()
	states, err := haproxy.ServersState(t.Context(), h.StatsSocket())
	if err != nil {
		t.Fatal(err)
	}
	byKey := map[string]haproxy.ServerState{}
	for _, s := range states {
		byKey[s.Key()] = s
	}
	for _, f := range failures {
		for _, p := range prior {
			op := haproxy.OpRunning
			if p.admin.Maint() {
				op = haproxy.OpStopped
			}
			got := byKey[f.name+"/"+p.name]
			if got.Admin != p.admin || got.Percent() != 30 || got.Op != op {
				t.Errorf("%s, %s: %v at %d%%, %v; want %v at 30%%, %v", f.name, when, got.Admin, got.Percent(), got.Op, p.admin, op)
			}
		}
	}
}
