package tests_test

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"hadrain/internal/desired"
	"hadrain/internal/haproxy"
	"hadrain/internal/testpeer"
)

// up says for each way to an answer with "up" how a responder is started, and
// what its rows begin with.
var up = map[string]struct {
	form desired.Form
	word string
}{
	"--agent-up": {desired.Up, ""},
	"+up":        {0, "+up "},
}

// A server that was added at run time stays down until an answer says "up": no
// health of the agent was ever set.
func TestServerAddedAtRunTime(t *testing.T) {
	t.Parallel()
	testpeer.EachHAProxy(t, func(t *testing.T, binary string) {
		for name, way := range up {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := newPair(t, binary, way.form, `a "web/a\n"`)
				p.set("web/a", "ready")
				p.add("with", way.word)
				p.add("without", "-up ")
				p.expect("with", 0, 100)
				p.expectOp("with", haproxy.OpRunning)
				waitChecked(t, p.http, 3)
				p.expectOp("without", haproxy.OpStopped)
				if got := p.stat("without"); got.Status != "DOWN (agent)" || got.AgentHealth != 0 {
					t.Errorf("without up: %s, agent's health %d; want DOWN (agent), 0", got.Status, got.AgentHealth)
				}
				p.set("web/with", "drain")
				p.expect("with", haproxy.FDRAIN, 100)
				p.set("web/with", "25%")
				p.expect("with", 0, 25)
				p.expectOp("with", haproxy.OpRunning)
			})
		}
	})
}

// add adds an enrolled server on HAProxy's socket, which cannot send a newline
// in a question; a literal one counts. words are options, each with its space.
func (p *pair) add(name, words string) {
	p.t.Helper()
	send := ""
	if words != "" {
		send = words[:len(words)-1] + `\ `
	}
	// HAProxy 2.6 calls this an experiment.
	p.haproxy.CLI(p.t, fmt.Sprintf(`experimental-mode on; add server web/%s 127.0.0.1:1 weight 100 %s agent-send %sweb/%s\\n`, name, p.enrol(), send, name))
	p.haproxy.CLI(p.t, "enable agent web/"+name)
	p.haproxy.CLI(p.t, "set server web/"+name+" state ready")
}

func (p *pair) expectOp(server string, op haproxy.Op) {
	p.t.Helper()
	testpeer.WaitFor(p.t, fmt.Sprintf("%s to be %v", server, op), func() (bool, string) {
		got := p.server(server).Op
		return got == op, got.String()
	})
}

// What only "up" ends: a server that somebody has called down by hand.
func TestUpEndsAgentDown(t *testing.T) {
	t.Parallel()
	testpeer.EachHAProxy(t, func(t *testing.T, binary string) {
		for name, way := range up {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := newPair(t, binary, way.form, fmt.Sprintf(`with "%sweb/with\n"`, way.word), `without "-up web/without\n"`)
				p.set("web/with", "ready", "web/without", "ready")
				waitChecked(t, p.http, 2)
				p.haproxy.CLI(t, "set server web/with agent down")
				p.haproxy.CLI(t, "set server web/without agent down")
				waitChecked(t, p.http, 2)
				p.expectOp("with", haproxy.OpRunning)
				p.expectOp("without", haproxy.OpStopped)
			})
		}
	})
}

// TestObserve is why "up" is no default: it resets the errors that HAProxy has
// counted by watching traffic, at every check, and those of a server that
// passes its health check and fails requests never add up.
func TestObserve(t *testing.T) {
	t.Parallel()
	testpeer.EachHAProxy(t, func(t *testing.T, binary string) {
		t.Parallel()
		p := newResponder(t, 0)
		p.set("web/without", "ready", "web/with", "ready")
		p.haproxy = testpeer.HAProxy(t, testpeer.HAProxyConfig{
			Binary: binary, Plain: true, Listen: []string{"with", "without"},
			Config: p.observed("with", "+up ") + p.observed("without", ""),
		})
		for range 4 { // one more than the limit
			waitChecked(t, p.http, 2)
			failRequest(t, p.haproxy.Addr("with"))
			failRequest(t, p.haproxy.Addr("without"))
		}
		p.expectOp("without", haproxy.OpStopped)
		waitChecked(t, p.http, 2)
		p.expectOp("with", haproxy.OpRunning)
		p.expectOp("without", haproxy.OpStopped)
	})
}

// observed returns a backend and its frontend. The health check finds a port
// that listens, and traffic one that does not.
func (p *pair) observed(name, words string) string {
	p.t.Helper()
	host, port, err := net.SplitHostPort(p.http)
	if err != nil {
		p.t.Fatal(err)
	}
	return fmt.Sprintf(`
global
 max-spread-checks 50ms
defaults
 mode http
 retries 0
 timeout connect 1s
 timeout client 1s
 timeout server 1s
frontend %[1]s-in
 bind "fd@${%[1]s}"
 default_backend %[1]s
backend %[1]s
 server %[1]s 127.0.0.1:1 weight 100 check addr %[2]s port %[3]s inter 1h observe layer4 error-limit 3 on-error mark-down %[4]s agent-send "%[5]sweb/%[1]s\n"
`, name, host, port, p.enrol(), words)
}

func failRequest(t *testing.T, addr string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("HAProxy answered %s, want 503: its server refuses connections", resp.Status)
	}
}
