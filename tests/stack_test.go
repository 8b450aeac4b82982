// Package tests_test holds what needs real peers: a Consul, an HAProxy and our
// own programs, as an operator would run them. One scenario a test.
package tests_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/haproxy"
	"hadrain/internal/statusjson"
	"hadrain/internal/testpeer"
)

const (
	sentinelID      = "6f1c2b7e-0000-4000-8000-000000000001"
	managementToken = "3a3bfa2b-4f3b-4d38-9a17-3c8f0f0c7a11" // may do anything in a Consul with ACLs
)

// A stack is a whole load balancer and its Consul: Consul, render, responder
// and HAProxy, with nothing between them but what production has.
type stack struct {
	t      testing.TB
	root   string // KV root
	consul *testpeer.ConsulServer
	kv     *consulapi.KV
	dir    string // of the state file
	agent  *net.TCPListener
	http   *net.TCPListener

	render    *testpeer.Process
	responder *testpeer.Process
	haproxy   *testpeer.HAProxyServer
}

// options say how a stack differs from the usual one.
type options struct {
	root      string   // KV root, "hadrain" if empty
	haproxy   string   // binary; what is installed if empty
	servers   []string // lines "name agent-send" of backend web
	responder []string // more flags of the responder
	consul    testpeer.ConsulConfig
}

func newStack(t *testing.T, o options) *stack {
	t.Helper()
	s := &stack{t: t, root: o.root, dir: testpeer.Dir(t)}
	if s.root == "" {
		s.root = "hadrain"
	}
	s.agent, s.http = listen(t), listen(t)
	s.consul = testpeer.Consul(t, o.consul)
	s.kv = s.consul.Client(t).KV()
	s.mark()
	s.startRender()
	s.startResponder(o.responder...)
	s.haproxy = testpeer.HAProxy(t, testpeer.HAProxyConfig{Binary: o.haproxy, Config: s.haproxyConfig(o.servers)})
	return s
}

func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// unused returns an address of loopback that nobody uses, for a daemon that opens
// its port itself.
func unused(t *testing.T) string {
	t.Helper()
	l := listen(t)
	_ = l.Close() // the daemon binds it in a moment
	return l.Addr().String()
}

func (s *stack) statePath() string { return filepath.Join(s.dir, "state") }

func (s *stack) startRender() {
	s.t.Helper()
	s.render = testpeer.Start(s.t, s.renderCommand())
	testpeer.WaitFor(s.t, "render to write the state file", func() (bool, string) {
		_, err := os.Stat(s.statePath())
		return err == nil, s.render.Output()
	})
}

func (s *stack) renderCommand(flags ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(testpeer.Build(s.t, "hadrain-render"),
		append([]string{"--state", s.statePath(), "--kv-root", s.root, "--http.listen", ""}, flags...)...)
	cmd.Env = append(os.Environ(), "CONSUL_HTTP_ADDR="+s.consul.Addr())
	return cmd
}

// startResponder runs it as systemd would: this test holds the sockets, so that
// none refuses a connection while it restarts.
func (s *stack) startResponder(flags ...string) {
	s.t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{
		"-c", `LISTEN_PID=$$ exec "$0" "$@"`,
		testpeer.Build(s.t, "hadrain-responder"), "--state", s.statePath(),
	}, flags...)...)
	cmd.Env = append(os.Environ(), "LISTEN_FDS=2", "LISTEN_FDNAMES=agent:http")
	for _, l := range []*net.TCPListener{s.agent, s.http} {
		f, err := l.File()
		if err != nil {
			s.t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	s.responder = testpeer.Start(s.t, cmd)
}

// haproxyConfig enrols servers as the documentation says, but asks more often.
func (s *stack) haproxyConfig(servers []string) string {
	_, port, _ := net.SplitHostPort(s.agent.Addr().String())
	var b strings.Builder
	b.WriteString("global\n  max-spread-checks 50ms\ndefaults\n  mode http\n  timeout connect 1s\n  timeout client 5s\n  timeout server 5s\nbackend web\n")
	for _, server := range servers {
		name, send, _ := strings.Cut(server, " ")
		fmt.Fprintf(&b, "  server %s 127.0.0.1:9 weight 100 agent-check agent-addr 127.0.0.1 agent-port %s agent-inter 200ms agent-send \"%s\\n\"\n", name, port, send)
	}
	return b.String()
}

// put writes a value as "consul kv put" does. key is below ROOT/state/.
func (s *stack) put(key, value string) {
	s.t.Helper()
	if _, err := s.kv.Put(&consulapi.KVPair{Key: s.root + "/state/" + key, Value: []byte(value)}, nil); err != nil {
		s.t.Fatal(err)
	}
}

// mark puts the sentinel, as hadrain init does.
func (s *stack) mark() {
	s.t.Helper()
	s.put(".hadrain", "v1 id="+sentinelID)
}

func (s *stack) delete(key string) {
	s.t.Helper()
	if _, err := s.kv.Delete(s.root+"/state/"+key, nil); err != nil {
		s.t.Fatal(err)
	}
}

// index returns Consul's index of the prefix.
func (s *stack) index() uint64 {
	s.t.Helper()
	_, meta, err := s.kv.List(s.root+"/state/", &consulapi.QueryOptions{RequireConsistent: true})
	if err != nil {
		s.t.Fatal(err)
	}
	return meta.LastIndex
}

// settle waits until HAProxy has acted on everything that was written so far:
// every row was answered from the newest state, and was asked once more, so
// that the answer before has been digested.
func (s *stack) settle(rows int) {
	s.t.Helper()
	index := s.index()
	s.askedSince(rows, func(row statusjson.Row) bool { return row.Index >= index })
}

// askedSince waits until every row passes, and then for another question of each.
func (s *stack) askedSince(rows int, passes func(statusjson.Row) bool) {
	s.t.Helper()
	waitAsked(s.t, s.http.Addr().String(), rows, passes)
}

// servers returns what HAProxy holds of each server of backend web, by name.
func (s *stack) servers() map[string]haproxy.ServerState {
	s.t.Helper()
	states, err := haproxy.ServersState(s.t.Context(), s.haproxy.StatsSocket())
	if err != nil {
		s.t.Fatal(err)
	}
	byName := map[string]haproxy.ServerState{}
	for _, state := range states {
		byName[state.Server] = state
	}
	return byName
}

// expect fails unless server is in the given administrative state and weight.
func (s *stack) expect(server string, admin haproxy.Admin, percent int) {
	s.t.Helper()
	got, ok := s.servers()[server]
	if !ok || got.Admin != admin || got.Percent() != percent {
		s.t.Errorf("%s: admin %v, weight %d%%, want %v, %d%%", server, got.Admin, got.Percent(), admin, percent)
	}
}
