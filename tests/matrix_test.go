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

// effect is what HAProxy is to hold of a server.
type effect struct {
	admin   haproxy.Admin
	percent int
}

var inRotation = effect{0, 100}

// hold stands for "whatever it was" among the effects of values.
var hold = effect{percent: -1}

// effects are those of what may stand under a key, "" for nothing. A value that
// is not here is rejected.
var effects = map[string]effect{
	"":      inRotation,
	"ready": inRotation,
	"drain": {haproxy.FDRAIN, 100},
	"maint": {haproxy.FMAINT, 100},
	"50%":   {0, 50},
	"0%":    {0, 0},
	"hold":  hold,
}

var values = []string{"", "ready", "drain", "maint", "50%", "0%", "hold", "dran"}

// A hand is what a person does to a server on HAProxy's socket.
type hand struct {
	command string // after "set server NAME "
	do      func(effect) effect
}

var hands = []hand{
	{"state drain", func(e effect) effect { return effect{haproxy.FDRAIN, e.percent} }},
	{"state maint", func(e effect) effect { return effect{haproxy.FMAINT, e.percent} }},
	{"state ready", func(e effect) effect { return effect{0, e.percent} }},
	{"weight 7", func(e effect) effect { return effect{e.admin, 7} }},
}

// A model is a server as it has to be, by the reply table alone: every answer
// but hold's says everything, so nothing that came before it matters.
type model struct {
	server  string // of backend web
	history string // for people
	value   string // the value in force, the last one that was accepted
	held    effect // what HAProxy holds
}

// write puts a value under the server's key. A rejected one leaves the value
// before in force, and is a hold where there was none.
func (m *model) write(value string) {
	m.history += fmt.Sprintf(", %q", value)
	if _, accepted := effects[value]; accepted {
		m.value = value
	} else if m.value == "" {
		m.value = "hold"
	}
	m.check()
}

// check is an agent check.
func (m *model) check() {
	if e := effects[m.value]; e != hold {
		m.held = e
	}
}

// byHand is what a person does to the server, and the check after it.
func (m *model) byHand(h hand) {
	m.history += ", by hand " + h.command
	m.held = h.do(m.held)
	m.check()
}

// reload makes HAProxy forget.
func (m *model) reload() {
	m.history += ", reload"
	m.held = inRotation
	m.check()
}

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

// TestTransitions drives a server for each pair of values through Consul and
// reads back from HAProxy what it made of them.
func TestTransitions(t *testing.T) {
	t.Parallel()
	testpeer.EachHAProxy(t, func(t *testing.T, binary string) {
		t.Parallel()
		for name, flags := range map[string][]string{"plain": nil, "up": {"--agent-up"}} {
			t.Run(name, func(t *testing.T) { testTransitions(t, binary, flags) })
		}
	})
}

func testTransitions(t *testing.T, binary string, flags []string) {
	all := transitions()
	var servers []string
	for _, tr := range all {
		servers = append(servers, fmt.Sprintf("%s web/%s", tr.server, tr.server))
	}
	s := newStack(t, options{haproxy: binary, servers: servers, responder: flags})
	each := func(do func(tr *transition)) {
		for _, tr := range all {
			do(tr)
		}
	}
	write := func(tr *transition, value string) {
		tr.write(value)
		if value == "" {
			s.delete("web/" + tr.server)
		} else {
			s.put("web/"+tr.server, value)
		}
	}
	byHand := func(tr *transition, h hand) {
		tr.byHand(h)
		s.haproxy.CLI(t, "set server web/"+tr.server+" "+h.command)
	}
	check := func() {
		t.Helper()
		got := s.servers()
		each(func(tr *transition) {
			state := got[tr.server]
			if w := tr.held; state.Admin != w.admin || state.Percent() != w.percent {
				t.Errorf("%s: admin %v, weight %d%%, want %v, %d%%", tr.history[2:], state.Admin, state.Percent(), w.admin, w.percent)
			}
		})
	}
	checkNext := func() {
		t.Helper()
		now := time.Now()
		s.askedSince(len(all), func(row statusjson.Row) bool { return row.Asked.After(now) })
		check()
	}

	each(func(tr *transition) { write(tr, tr.from) })
	s.settle(len(all))
	check()
	each(func(tr *transition) {
		if tr.hand != nil {
			byHand(tr, *tr.hand)
		}
	})
	checkNext()
	each(func(tr *transition) { write(tr, tr.to) })
	s.settle(len(all))
	check()
	for _, h := range hands { // which the next check ends, except during a hold
		each(func(tr *transition) { byHand(tr, h) })
		checkNext()
	}

	// A new render knows rejected values' predecessors from the file alone, and
	// a new HAProxy knows nothing.
	s.render.Stop(t)
	s.startRender()
	s.put("canary", "ready") // moves the index: the new render has read everything
	s.settle(len(all))
	check()
	s.haproxy.Reload(t)
	each(func(tr *transition) { tr.reload() })
	checkNext()
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
	now := time.Now()
	s.askedSince(1, func(row statusjson.Row) bool { return row.Asked.After(now) })
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
