package tests_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"hadrain/internal/haproxy"
	"hadrain/internal/statusjson"
	"hadrain/internal/testpeer"
)

// A transition is a server that goes from a value, and perhaps from what a
// person has set during a hold, to another value.
type transition struct {
	model
	from string
	hand *hand
	to   string
}

func transitions() (all []*transition) {
	add := func(from string, h *hand, to string) {
		all = append(all, &transition{
			model: model{server: fmt.Sprintf("s%d", len(all)), held: inRotation},
			from:  from, hand: h, to: to,
		})
	}
	for _, to := range values {
		for _, from := range values {
			add(from, nil, to)
		}
		for i := range hands {
			add("hold", &hands[i], to)
		}
	}
	return all
}

// A matrix is a stack with a server for each transition.
type matrix struct {
	*stack
	all []*transition
}

func newMatrix(t *testing.T, binary string, flags []string) *matrix {
	t.Helper()
	m := &matrix{all: transitions()}
	var servers []string
	for _, tr := range m.all {
		servers = append(servers, fmt.Sprintf("%s web/%s", tr.server, tr.server))
	}
	m.stack = newStack(t, options{haproxy: binary, servers: servers, responder: flags})
	return m
}

func (m *matrix) write(tr *transition, value string) {
	m.t.Helper()
	tr.write(value)
	if value == "" {
		m.delete("web/" + tr.server)
	} else {
		m.put("web/"+tr.server, value)
	}
}

func (m *matrix) byHand(tr *transition, h hand) {
	m.t.Helper()
	tr.byHand(h)
	m.haproxy.CLI(m.t, "set server web/"+tr.server+" "+h.command)
}

// compare fails for every server that is not as its model.
func (m *matrix) compare() {
	m.t.Helper()
	got := m.servers()
	for _, tr := range m.all {
		state, want := got[tr.server], tr.held
		if state.Admin != want.admin || state.Percent() != want.percent {
			m.t.Errorf("%s: admin %v, weight %d%%, want %v, %d%%", tr.history, state.Admin, state.Percent(), want.admin, want.percent)
		}
	}
}

// settled is compare after HAProxy has acted on all that was written.
func (m *matrix) settled() {
	m.t.Helper()
	m.settle(len(m.all))
	m.compare()
}

// checked is compare after one more check of every server.
func (m *matrix) checked() {
	m.t.Helper()
	waitChecked(m.t, m.http.Addr().String(), len(m.all))
	m.compare()
}

// TestTransitions drives a server for each pair of values through Consul, and
// what a person may do in between on HAProxy's socket, and reads back from
// HAProxy what it made of them.
func TestTransitions(t *testing.T) {
	t.Parallel()
	testpeer.EachHAProxy(t, func(t *testing.T, binary string) {
		t.Parallel()
		for name, flags := range map[string][]string{"plain": nil, "up": {"--agent-up"}} {
			t.Run(name, func(t *testing.T) { testTransitions(newMatrix(t, binary, flags)) })
		}
	})
}

func testTransitions(m *matrix) {
	for _, tr := range m.all {
		m.write(tr, tr.from)
	}
	m.settled()
	for _, tr := range m.all {
		if tr.hand != nil {
			m.byHand(tr, *tr.hand)
		}
	}
	m.checked()
	for _, tr := range m.all {
		m.write(tr, tr.to)
	}
	m.settled()
	for _, h := range hands { // which the next check ends, except during a hold
		for _, tr := range m.all {
			m.byHand(tr, h)
		}
		m.checked()
	}

	// A new render knows rejected values' predecessors from the file alone, and
	// a new HAProxy knows nothing.
	m.render.Stop(m.t)
	m.startRender()
	m.put("canary", "ready") // moves the index: the new render has read everything
	m.settled()
	m.haproxy.Reload(m.t)
	for _, tr := range m.all {
		tr.reload()
	}
	m.checked()
}

func TestRowOverridesItsGroup(t *testing.T) {
	s := newStack(t, options{servers: []string{"a web/a canary", "b web/b canary", "c web/c"}})
	step := func(what string, change func(), a, b effect) {
		t.Helper()
		change()
		s.settle(3)
		t.Log(what)
		s.expect("a", a.admin, a.percent)
		s.expect("b", b.admin, b.percent)
		s.expect("c", 0, 100)
	}
	drain, maint := effect{haproxy.FDRAIN, 100}, effect{haproxy.FMAINT, 100}
	step("the group is drained", func() { s.put("canary", "drain") }, drain, drain)
	step("a row is pinned", func() { s.put("web/a", "ready # pinned") }, inRotation, drain)
	step("the row is in maintenance", func() { s.put("web/a", "maint") }, maint, drain)
	step("the row's key is deleted", func() { s.delete("web/a") }, drain, drain)
	step("the group's key is deleted", func() { s.delete("canary") }, inRotation, inRotation)
}

// TestTypoDoesNotHideTheGroup: a value that is none, under a key that had none
// before, leaves the answer to the group, also in a new HAProxy.
func TestTypoDoesNotHideTheGroup(t *testing.T) {
	s := newStack(t, options{servers: []string{"a web/a canary", "b web/b canary"}})
	s.put("canary", "drain")
	s.settle(2)
	s.put("web/a", "dran")
	s.settle(2)
	s.expect("a", haproxy.FDRAIN, 100)
	reloaded := time.Now()
	s.haproxy.Reload(t)
	s.askedSince(2, func(row statusjson.Row) bool { return row.Asked.After(reloaded) })
	s.expect("a", haproxy.FDRAIN, 100)
	s.expect("b", haproxy.FDRAIN, 100)
}

// TestOtherRoot serves the keys of a fleet that exists already, written by
// plain "consul kv put" under another root.
func TestOtherRoot(t *testing.T) {
	s := newStack(t, options{root: "gitlab-haproxy-agent", servers: []string{"a web/a canary"}})
	s.put("canary", "MAINT\n")
	s.settle(1)
	s.expect("a", haproxy.FMAINT, 100)
}

func TestHAProxyKeepsStateWithoutResponder(t *testing.T) {
	s := newStack(t, options{servers: []string{"a web/a canary"}})
	s.put("canary", "drain")
	s.settle(1)
	s.responder.Kill(t)
	before := s.stats("a")
	// Unanswered checks end in a time-out of their own; HAProxy says so.
	testpeer.WaitFor(t, "HAProxy to miss the responder", func() (bool, string) {
		now := s.stats("a")
		return now.AgentStatus != before.AgentStatus && now.AgentStatus[0] != '*', now.AgentStatus
	})
	s.expect("a", haproxy.FDRAIN, 100)
	s.put("canary", "maint")
	s.startResponder()
	s.settle(1)
	s.expect("a", haproxy.FMAINT, 100)
}

func (s *stack) stats(server string) haproxy.Stat {
	s.t.Helper()
	stats, err := haproxy.Stats(s.t.Context(), s.haproxy.StatsSocket())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, stat := range stats {
		if stat.Name == server {
			return stat
		}
	}
	s.t.Fatalf("HAProxy has no server %s", server)
	return haproxy.Stat{}
}

func TestNothingChangesWithoutConsul(t *testing.T) {
	s := newStack(t, options{servers: []string{"a web/a canary"}, consul: testpeer.ConsulConfig{Persistent: true}})
	s.put("canary", "drain")
	s.settle(1)
	before, err := os.ReadFile(s.statePath())
	if err != nil {
		t.Fatal(err)
	}
	s.consul.Stop(t)
	testpeer.WaitFor(t, "render to notice", func() (bool, string) {
		return len(s.render.Output()) > 0, s.render.Output()
	})
	waitChecked(t, s.http.Addr().String(), 1)
	s.expect("a", haproxy.FDRAIN, 100)
	after, err := os.ReadFile(s.statePath())
	if err != nil {
		t.Fatal(err)
	}
	if string(after) != string(before) {
		t.Errorf("the state file changed while Consul was away:\n%s\nbefore:\n%s", after, before)
	}
	s.consul.Start(t)
	s.put("canary", "maint")
	s.settle(1)
	s.expect("a", haproxy.FMAINT, 100)
}
