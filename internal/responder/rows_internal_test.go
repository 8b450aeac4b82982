package responder

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hadrain/internal/agentcheck"
	"hadrain/internal/desired"
)

// A clock is what rows are told the time by.
type clock time.Time

func newClock() *clock {
	c := clock(time.Date(2026, 9, 9, 12, 0, 0, 0, time.UTC))
	return &c
}

func (c *clock) now() time.Time { return time.Time(*c) }

func (c *clock) pass(d time.Duration) { *c = clock(c.now().Add(d)) }

func (rs *rows) ask(c *clock, line string, states map[string]desired.State) {
	a := agentcheck.Respond([]byte(line), 0, func(key []byte) (desired.State, bool) { s, ok := states[string(key)]; return s, ok })
	a.Index = uint64(len(states))
	rs.note([]byte(line), a, c.now())
}

func (rs *rows) find(first string) *listed {
	for _, l := range rs.list() {
		if l.first == first {
			return &l
		}
	}
	return nil
}

func TestRowRemembers(t *testing.T) {
	c, rs := newClock(), newRows(10)
	none := map[string]desired.State{}
	drain := map[string]desired.State{"canary": desired.Drain}
	begin := c.now()
	rs.ask(c, "+up web/a canary", none)
	c.pass(2 * time.Second)
	rs.ask(c, "+up web/a canary", none)
	got := rs.find("web/a").status()
	if got.Answer != "up ready 100%" || got.Key != "" || !got.Since.Equal(begin) || got.Interval != 2 || got.Index != 0 {
		t.Errorf("row = %+v", got)
	}
	c.pass(2 * time.Second)
	rs.ask(c, "+up web/a canary", drain)
	got = rs.find("web/a").status()
	if got.Answer != "up drain 100%" || got.Key != "canary" || !got.Since.Equal(c.now()) || got.Index != 1 {
		t.Errorf("row after the drain = %+v", got)
	}
	if keys := strings.Join(got.Keys, " "); keys != "web/a canary" {
		t.Errorf("keys = %q", keys)
	}
}

// Of a long question whole keys are remembered.
func TestLongQuestion(t *testing.T) {
	c, rs := newClock(), newRows(10)
	group := strings.Repeat("g", 100)
	rs.ask(c, "web/a"+strings.Repeat(" "+group, 9), nil)
	keys := rs.find("web/a").keys()
	if len(keys) < 3 || len(keys) > 6 {
		t.Errorf("%d keys", len(keys))
	}
	for _, key := range keys[1:] {
		if key != group {
			t.Errorf("key %q, want %q", key, group)
		}
	}
}

func TestRowsNotWorthRemembering(t *testing.T) {
	c, rs := newClock(), newRows(10)
	for _, line := range []string{"", "a\x00b canary", "-nope web/a", strings.Repeat("k", 300)} {
		rs.ask(c, line, nil)
	}
	if all := rs.list(); len(all) != 0 {
		t.Errorf("rows = %+v, want none", all)
	}
}

// A person who asks once or twice makes no row fall silent, and changes nothing
// of what is remembered of HAProxy's question.
func TestPeopleAsk(t *testing.T) {
	c, rs := newClock(), newRows(10)
	drain := map[string]desired.State{"canary": desired.Drain}
	haproxy := func() { c.pass(2 * time.Second); rs.ask(c, "web/a canary", drain) }
	for range 5 {
		haproxy()
	}
	before := rs.find("web/a").status()
	rs.ask(c, "web/a", drain)
	rs.ask(c, "canary", drain)
	if after := rs.find("web/a").status(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("another question made %+v of %+v", after, before)
	}
	haproxy()
	rs.ask(c, "canary", drain)
	for range 50 {
		haproxy()
		if rs.find("canary").silent {
			t.Fatal("silent after a person asked twice")
		}
	}
	if got := rs.find("web/a").status(); !got.Since.Equal(before.Since) || got.Interval != 2 {
		t.Errorf("row = %+v, want since %v, interval 2", got, before.Since)
	}
	for range 20 {
		haproxy()
	}
	if rs.find("canary") != nil {
		t.Error("still remembered after two minutes")
	}
	// haproxy.cfg loses the group: what is asked again is the row's question.
	for range 2 {
		c.pass(2 * time.Second)
		rs.ask(c, "web/a", drain)
	}
	if got := rs.find("web/a").status(); len(got.Keys) != 1 || got.Answer != "ready 100%" {
		t.Errorf("row = %+v after a change of haproxy.cfg", got)
	}
}

func TestSilentRows(t *testing.T) {
	c, rs := newClock(), newRows(10)
	both := func() { rs.ask(c, "web/a", nil); rs.ask(c, "web/b", nil) }
	both()
	c.pass(2 * time.Second)
	both()
	// Nobody is asked for: HAProxy is down, not one row.
	c.pass(time.Hour)
	if rs.find("web/a").silent || rs.find("web/b").silent {
		t.Error("silent although no sibling was asked for")
	}
	rs.ask(c, "web/a", nil)
	if l := rs.find("web/b"); l == nil {
		t.Fatal("web/b was forgotten at the first check after a long pause")
	}
	both()
	for range 3 {
		c.pass(2 * time.Second)
		rs.ask(c, "web/a", nil)
	}
	if rs.find("web/b").silent {
		t.Error("web/b is silent after three intervals, want more than three")
	}
	c.pass(2 * time.Second)
	rs.ask(c, "web/a", nil)
	if !rs.find("web/b").silent || rs.find("web/a").silent {
		t.Error("web/b is not silent, or web/a is, after four intervals")
	}
	rs.ask(c, "web/b", nil)
	if rs.find("web/b").silent {
		t.Error("web/b is silent although it was asked for again")
	}
	for range 400 {
		c.pass(2 * time.Second)
		rs.ask(c, "web/a", nil)
	}
	if rs.find("web/b") != nil {
		t.Error("web/b is remembered after more than ten minutes")
	}
}

func TestRowsAreBounded(t *testing.T) {
	c, rs := newClock(), newRows(100)
	long := strings.Repeat(" group", 60)
	for i := range 1000 {
		rs.ask(c, fmt.Sprintf("web/%d%s", i, long), nil)
	}
	if n := len(rs.list()); n != 100 {
		t.Errorf("%d rows, want 100", n)
	}
	// What is silent makes room for what is asked for.
	for range 5 {
		c.pass(2 * time.Second)
		rs.ask(c, "web/7", nil)
	}
	rs.ask(c, "web/new", nil)
	if rs.find("web/new") == nil || rs.find("web/7") == nil {
		t.Error("no room was made for a new row")
	}
}

func TestNoteAllocatesNothing(t *testing.T) {
	c, rs := newClock(), newRows(100)
	line := []byte("web/a canary")
	a := agentcheck.Respond(line, 0, nil)
	rs.note(line, a, c.now())
	if n := testing.AllocsPerRun(100, func() { rs.note(line, a, c.now()) }); n != 0 {
		t.Errorf("%v allocations for a known row, want 0", n)
	}
}
