package tests_test

import (
	"strconv"

	"hadrain/internal/haproxy"
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

func (m *model) note(what string) {
	if m.history != "" {
		m.history += ", "
	}
	m.history += what
}

// write puts a value under the server's key. A rejected one leaves the value
// before in force, and is a hold where there was none.
func (m *model) write(value string) {
	m.note(strconv.Quote(value))
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
	m.note("by hand " + h.command)
	m.held = h.do(m.held)
	m.check()
}

// reload makes HAProxy forget.
func (m *model) reload() {
	m.note("reload")
	m.held = inRotation
	m.check()
}
