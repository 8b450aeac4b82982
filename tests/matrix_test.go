package tests_test

import (
	"fmt"
	"os"
	"path/filepath"
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

// inputs are what may stand under a key, "" for nothing. The effect of hold is
// the one before; that of a rejected value is the one of the value before, or
// hold's if there was none.
var inputs = []struct {
	value  string
	effect effect
}{
	{"", inRotation},
	{"ready", inRotation},
	{"drain", effect{haproxy.FDRAIN, 100}},
	{"maint", effect{haproxy.FMAINT, 100}},
	{"50%", effect{0, 50}},
	{"0%", effect{0, 0}},
	{"hold", effect{}},
	{"dran", effect{}},
}

const (
	hold     = 6
	rejected = 7
)

// afterReload returns the effect in a new HAProxy, which remembers nothing of
// the one before, of the value `from` followed by the value `to`.
func afterReload(from, to int) effect {
	switch {
	case to == hold, to == rejected && (from == 0 || from >= hold):
		return inRotation
	case to == rejected:
		return inputs[from].effect
	}
	return inputs[to].effect
}

// live returns the effect in the HAProxy that saw both values.
func live(from, to int) effect {
	first := inputs[from].effect
	if from >= hold {
		first = inRotation // nothing came before
	}
	if to >= hold {
		return first
	}
	return inputs[to].effect
}

// TestTransitions drives a server for each pair of values through Consul and
// reads back from HAProxy what it made of them.
func TestTransitions(t *testing.T) {
	for _, binary := range testpeer.HAProxies(t) {
		for name, flags := range map[string][]string{"plain": nil, "up": {"--agent-up"}} {
			t.Run(filepath.Base(filepath.Dir(binary))+"/"+name, func(t *testing.T) {
				testTransitions(t, binary, flags)
			})
		}
	}
}

func testTransitions(t *testing.T, binary string, flags []string) {
	var servers []string
	each := func(do func(server string, from, to int)) {
		for from := range inputs {
			for to := range inputs {
				do(fmt.Sprintf("s%d%d", from, to), from, to)
			}
		}
	}
	each(func(server string, _, _ int) { servers = append(servers, fmt.Sprintf("%s web/%s", server, server)) })
	s := newStack(t, options{haproxy: binary, servers: servers, responder: flags})
	check := func(when string, want func(from, to int) effect) {
		t.Helper()
		got := s.servers()
		each(func(server string, from, to int) {
			state := got[server]
			if w := want(from, to); state.Admin != w.admin || state.Percent() != w.percent {
				t.Errorf("%s, %q then %q: admin %v, weight %d%%, want %v, %d%%",
					when, inputs[from].value, inputs[to].value, state.Admin, state.Percent(), w.admin, w.percent)
			}
		})
	}
	set := func(server string, value string) {
		if value == "" {
			s.delete("web/" + server)
		} else {
			s.put("web/"+server, value)
		}
	}

	each(func(server string, from, _ int) { set(server, inputs[from].value) })
	s.settle(len(servers))
	check("first value", func(from, _ int) effect { return live(0, from) })
	each(func(server string, _, to int) { set(server, inputs[to].value) })
	s.settle(len(servers))
	check("second value", live)

	// A new render knows rejected values' predecessors from the file alone, and
	// a new HAProxy knows nothing.
	s.render.Stop(t)
	s.startRender()
	s.put("canary", "ready") // moves the index: the new render has read everything
	s.settle(len(servers))
	check("after a restart of render", live)
	reloaded := time.Now()
	s.haproxy.Reload(t)
	s.askedSince(len(servers), func(row statusjson.Row) bool { return row.Asked.After(reloaded) })
	check("after a reload of HAProxy", afterReload)
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
