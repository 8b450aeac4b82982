package tests_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
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
	http    string // the same of the responder's HTTP
	haproxy *testpeer.HAProxyServer
}

// newPair starts both. servers are lines "name agent-send" of backend web, as
// in a double-quoted string of haproxy.cfg, without the newline unless they say
// so.
func newPair(t *testing.T, binary string, form desired.Form, servers ...string) *pair {
	t.Helper()
	p := newResponder(t, form)
	p.haproxy = testpeer.HAProxy(t, testpeer.HAProxyConfig{Binary: binary, Config: p.config(servers), Plain: true})
	return p
}

// newResponder starts half a pair.
func newResponder(t *testing.T, form desired.Form) *pair {
	t.Helper()
	agent, http := listen(t), listen(t)
	p := &pair{t: t, state: filepath.Join(t.TempDir(), "state"), agent: agent.Addr().String(), http: http.Addr().String()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	cfg := responder.Config{State: p.state, Form: form, Agent: []net.Listener{agent}, HTTP: []net.Listener{http}}
	go func() { done <- responder.Run(ctx, cfg, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("responder: %v", err)
		}
	})
	return p
}

func (p *pair) config(servers []string) string {
	var b strings.Builder
	b.WriteString("global\n max-spread-checks 50ms\ndefaults\n mode http\n timeout connect 1s\n timeout client 1s\n timeout server 1s\n")
	b.WriteString("backend web\n balance roundrobin\n")
	for _, line := range servers {
		name, send, _ := strings.Cut(line, " ")
		fmt.Fprintf(&b, " server %s 127.0.0.1:1 weight 100 %s agent-send %s\n", name, p.enrol(), send)
	}
	return b.String()
}

// enrol returns what enrols a server, without its agent-send.
func (p *pair) enrol() string {
	p.t.Helper()
	host, port, err := net.SplitHostPort(p.agent)
	if err != nil {
		p.t.Fatal(err)
	}
	return fmt.Sprintf("agent-check agent-inter 200ms agent-addr %s agent-port %s", host, port)
}

// set replaces the state file: pairs of key and state.
func (p *pair) set(pairs ...string) {
	p.t.Helper()
	p.index++
	f := &statefile.File{Head: statefile.Head{Root: "hadrain", ID: "6f1c", Index: p.index, Host: "lb-1", Rendered: time.Now().UTC()}}
	for i := 0; i < len(pairs); i += 2 {
		f.Rows = append(f.Rows, desired.Accept(pairs[i], pairs[i+1], desired.Row{}, false))
	}
	slices.SortFunc(f.Rows, func(a, b desired.Row) int { return strings.Compare(a.Key, b.Key) })
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
		reason := p.stat(server).LastAgent
		return strings.Contains(reason, word), reason
	})
}

// stat returns what "show stat" tells about a server of backend web.
func (p *pair) stat(name string) haproxy.Stat {
	p.t.Helper()
	all, err := haproxy.Stats(p.t.Context(), p.haproxy.StatsSocket())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, s := range all {
		if s.Key() == "web/"+name {
			return s
		}
	}
	p.t.Fatalf("HAProxy has no server %s", name)
	panic("unreachable: Fatalf ends the test")
}

// Every word that is no answer leaves HAProxy as it is and shows up in last_agt.
func TestWordsThatChangeNothing(t *testing.T) {
	t.Parallel()
	testpeer.EachHAProxy(t, func(t *testing.T, binary string) {
		p := newPair(t, binary, 0, `a "web/a\n"`, `late "web/late"`, `odd "+upp web/odd\n"`, `quoted 'web/quoted\n'`, `crlf 'web/quoted\r\n'`)
		p.haproxy.CLI(t, "set server web/a state drain")
		p.haproxy.CLI(t, "set server web/late state maint")
		p.haproxy.CLI(t, "set server web/odd weight 30%")
		p.expectWord("a", "unsynced")
		p.expectWord("late", "no-newline")
		p.expectWord("odd", "refused")
		p.expect("a", haproxy.FDRAIN, 100)
		p.set("web/a", "hold", "web/late", "drain", "web/odd", "drain", "web/quoted", "drain")
		p.expect("quoted", haproxy.FDRAIN, 100)
		p.expect("crlf", haproxy.FDRAIN, 100)
		p.expectWord("a", "hold")
		p.expect("a", haproxy.FDRAIN, 100)
		p.expect("late", haproxy.FMAINT, 100)
		p.expect("odd", 0, 30)
	})
}

// Rows whose weight somebody else manages keep it. Nor does HAProxy log about
// them at every check that they remain drained, as 2.6 does after "drain 100%".
func TestOptionWordMinusWeight(t *testing.T) {
	t.Parallel()
	testpeer.EachHAProxy(t, func(t *testing.T, binary string) {
		t.Parallel()
		p := newPair(t, binary, 0, `a "-weight web/a\n"`, `usual "web/usual\n"`)
		p.haproxy.CLI(t, "set server web/a weight 30%")
		for state, admin := range map[string]haproxy.Admin{"drain": haproxy.FDRAIN, "maint": haproxy.FMAINT} {
			p.set("web/a", state, "web/usual", state)
			p.expect("a", admin, 30)
			waitChecked(t, p.http, 2)
			p.set("web/a", "ready", "web/usual", "ready")
			p.expect("a", 0, 30)
		}
		log := p.haproxy.Output()
		if strings.Contains(log, "Server web/a remains in forced drain mode") {
			t.Errorf("with -weight HAProxy logs at every check:\n%s", log)
		}
		t.Logf("without -weight HAProxy logs %d times that the server remains drained",
			strings.Count(log, "Server web/usual remains in forced drain mode"))
	})
}
