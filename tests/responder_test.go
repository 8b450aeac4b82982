package tests_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/haproxy"
	"hadrain/internal/responder"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
	"hadrain/internal/testpeer"
)

// A pair is a responder in this process and a real HAProxy that asks it.
type pair struct {
	t       *testing.T
	state   string
	index   uint64
	agent   string // host:port
	haproxy *testpeer.HAProxyServer
}

// newPair starts both. servers are lines "name agent-send" of backend web, as
// in a double-quoted string of haproxy.cfg, without the newline unless they say
// so.
func newPair(t *testing.T, binary string, servers ...string) *pair {
	t.Helper()
	p := &pair{t: t, state: filepath.Join(t.TempDir(), "state")}
	l := listen(t)
	p.agent = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- responder.Run(ctx, responder.Config{State: p.state, Agent: []net.Listener{l}}, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("responder: %v", err)
		}
	})
	p.haproxy = testpeer.HAProxy(t, testpeer.HAProxyConfig{Binary: binary, Config: p.config(servers), Plain: true})
	return p
}

func (p *pair) config(servers []string) string {
	host, port, err := net.SplitHostPort(p.agent)
	if err != nil {
		p.t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("global\n max-spread-checks 50ms\ndefaults\n mode http\n timeout connect 1s\n timeout client 1s\n timeout server 1s\n")
	b.WriteString("backend web\n balance roundrobin\n")
	for _, line := range servers {
		name, send, _ := strings.Cut(line, " ")
		fmt.Fprintf(&b, " server %s 127.0.0.1:1 weight 100 agent-check agent-inter 1s agent-addr %s agent-port %s agent-send %s\n",
			name, host, port, send)
	}
	return b.String()
}

// set replaces the state file: pairs of key and state.
func (p *pair) set(pairs ...string) {
	p.t.Helper()
	p.index++
	f := &statefile.File{Root: "hadrain", ID: "6f1c", Index: p.index, Host: "lb-1", Rendered: time.Now().UTC()}
	for i := 0; i < len(pairs); i += 2 {
		f.Rows = append(f.Rows, desired.Accept(pairs[i], pairs[i+1], desired.Row{}, false))
	}
	if err := statefile.Write(p.state, statefiletest.Format(f)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) server(name string) haproxy.ServerState {
	p.t.Helper()
	all, err := haproxy.ServersState(p.t.Context(), p.haproxy.StatsSocket())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, s := range all {
		if s.Server == name {
			return s
		}
	}
	p.t.Fatalf("HAProxy has no server %s", name)
	panic("unreachable: Fatalf ends the test")
}

func (p *pair) expect(server string, admin haproxy.Admin, percent int) {
	p.t.Helper()
	testpeer.WaitFor(p.t, fmt.Sprintf("%s to be %v at %d%%", server, admin, percent), func() (bool, string) {
		s := p.server(server)
		return s.Admin == admin && s.Percent() == percent, fmt.Sprintf("%v at %d%%", s.Admin, s.Percent())
	})
}

// expectWord waits until HAProxy says that the agent answered a word that it
// does not know.
func (p *pair) expectWord(server, word string) {
	p.t.Helper()
	testpeer.WaitFor(p.t, "HAProxy to report "+word+" for "+server, func() (bool, string) {
		all, err := haproxy.Stats(p.t.Context(), p.haproxy.StatsSocket())
		if err != nil {
			return false, err.Error()
		}
		for _, s := range all {
			if s.Name == server {
				return strings.Contains(s.LastAgent, word), s.LastAgent
			}
		}
		return false, "no such server"
	})
}

// What somebody set by hand on the socket is ended by the next check, whatever
// it was, and also after a time in which the answer changed nothing.
func TestCheckEndsWhatWasSetByHand(t *testing.T) {
	t.Parallel()
	for _, binary := range testpeer.HAProxies(t) {
		p := newPair(t, binary, `a "web/a canary\n"`)
		for _, hand := range []string{"set server web/a state drain", "set server web/a state maint", "set server web/a weight 7"} {
			for _, to := range []struct {
				state   string
				admin   haproxy.Admin
				percent int
			}{{"ready", 0, 100}, {"drain", haproxy.FDRAIN, 100}, {"maint", haproxy.FMAINT, 100}, {"50%", 0, 50}} {
				p.set("web/a", "hold")
				p.expectWord("a", "hold")
				p.haproxy.CLI(t, hand)
				p.set("web/a", to.state)
				p.expect("a", to.admin, to.percent)
			}
		}
	}
}

// Every word that is no answer leaves HAProxy as it is and shows up in last_agt.
func TestWordsThatChangeNothing(t *testing.T) {
	t.Parallel()
	for _, binary := range testpeer.HAProxies(t) {
		p := newPair(t, binary, `a "web/a\n"`, `late "web/late"`, `odd "+upp web/odd\n"`, `quoted 'web/quoted\n'`)
		p.haproxy.CLI(t, "set server web/a state drain")
		p.haproxy.CLI(t, "set server web/late state maint")
		p.haproxy.CLI(t, "set server web/odd weight 30%")
		p.expectWord("a", "unsynced")
		p.expectWord("late", "no-newline")
		p.expectWord("odd", "refused")
		p.expect("a", haproxy.FDRAIN, 100)
		p.set("web/a", "hold", "web/late", "drain", "web/odd", "drain", "web/quoted", "drain")
		p.expect("quoted", haproxy.FDRAIN, 100)
		p.expectWord("a", "hold")
		p.expect("a", haproxy.FDRAIN, 100)
		p.expect("late", haproxy.FMAINT, 100)
		p.expect("odd", 0, 30)
	}
}

// A server added at run time stays down without the word "up".
func TestServerAddedAtRunTime(t *testing.T) {
	t.Parallel()
	for _, binary := range testpeer.HAProxies(t) {
		p := newPair(t, binary, `a "web/a\n"`)
		p.set("web/a", "ready")
		host, port, err := net.SplitHostPort(p.agent)
		if err != nil {
			t.Fatal(err)
		}
		// Its command line cannot send a newline; a literal one counts.
		p.haproxy.CLI(t, fmt.Sprintf(`experimental-mode on; add server web/new 127.0.0.1:1 weight 100 agent-check agent-inter 1s agent-addr %s agent-port %s agent-send +up\ web/new\\n`, host, port))
		p.haproxy.CLI(t, "enable agent web/new")
		p.haproxy.CLI(t, "set server web/new state ready")
		p.expect("new", 0, 100)
		testpeer.WaitFor(t, "the new server to run", func() (bool, string) {
			s := p.server("new")
			return s.Op == haproxy.OpRunning, s.Op.String()
		})
	}
}
