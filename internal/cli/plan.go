package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/kv"
)

// want is what a verb asks of each key.
type want struct {
	verb    string
	state   desired.State
	delete  bool
	drained bool      // with delete: leaves alone what is ready
	until   time.Time // zero: open
	force   bool      // also over somebody else's drain
}

func (w want) String() string {
	if w.delete {
		return "no value"
	}
	return w.state.String()
}

// current is the value of a key as it was read.
type current struct {
	exists   bool
	raw      string
	value    desired.Value // zero if rejected
	note     desired.Note
	rejected error // raw is no value
}

func currentOf(state *kv.State, key string) current {
	entry, ok := state.Entries[key]
	c := current{exists: ok, raw: entry.Value}
	if !ok {
		return c
	}
	c.value, c.rejected = desired.ParseValue(entry.Value)
	c.note = desired.ParseNote(c.value.Note)
	return c
}

// String returns the state, or what stands there instead, in one printable word
// or two.
func (c current) String() string {
	switch {
	case !c.exists:
		return "-"
	case c.rejected != nil:
		return fmt.Sprintf("rejected %.40q", firstWord(c.raw))
	}
	return c.value.State.String()
}

func (c current) ready() bool { return c.exists && c.rejected == nil && c.value.State == desired.Ready }

// by returns who set the value, for people: the note is what anybody wrote.
func (c current) by() string { return desired.Printable(c.note.By) }

func firstWord(s string) string {
	if words := strings.Fields(s); len(words) > 0 {
		return words[0]
	}
	return ""
}

// step is what becomes of one key.
type step struct {
	key     string
	from    current
	value   string   // to write; "" to delete
	changes bool     // false: it is already as wanted
	foreign bool     // it is as wanted, by somebody else, and stays so
	servers []string // rows for which this key decides
	masked  []string // rows that send this key, but an earlier one decides
	falls   []fall   // rows that another key decides once this one is gone
}

// fall is a row and the key that decides for it next.
type fall struct{ row, key, state string }

// plan is everything that one command is to change.
type plan struct {
	want  want
	by    string
	now   time.Time
	steps []step
	// doubts are warnings of what could not be seen, and of who does not follow.
	doubts []string
}

// makePlan decides what to do with each key. reason is --reason.
func makePlan(w want, keys []string, state *kv.State, rows fleet, author kv.Author) plan {
	p := plan{want: w, by: author.By, now: author.At}
	note := desired.Note{By: author.By, At: author.At, Until: w.until, Reason: author.Reason}
	for _, key := range keys {
		s := step{key: key, from: currentOf(state, key)}
		if !w.delete {
			s.value = desired.Value{State: w.state, Note: note.String()}.String()
		}
		s.decide(w, author)
		p.steps = append(p.steps, s)
	}
	for i := range p.steps {
		p.steps[i].reach(w, p.after(state, rows), rows)
	}
	return p
}

// decide sets whether the key changes. A key that already has the wanted state
// changes only if a new reason or a new end is given, and not if the state is
// somebody else's: they would no longer be asked before it ends.
func (s *step) decide(w want, author kv.Author) {
	if w.delete {
		s.changes = s.from.exists && !(w.drained && s.from.ready())
		return
	}
	if !s.from.exists || s.from.rejected != nil || s.from.value.State != w.state {
		s.changes = true
		return
	}
	news := author.Reason != "" && author.Reason != s.from.note.Reason || !w.until.IsZero()
	s.foreign = news && s.from.foreign(author.By) && !w.force
	s.changes = news && !s.foreign
}

// foreign reports whether somebody else is known to have set the value.
func (c current) foreign(by string) bool {
	return c.exists && c.rejected == nil && c.note.By != "" && !sameOwner(c.note.By, by)
}

// after returns a view of the keys as they are once the plan is carried out: the
// state of a key, and whether it answers.
func (p *plan) after(state *kv.State, rows fleet) func(key string) (string, bool) {
	return func(key string) (string, bool) {
		for _, s := range p.steps {
			if s.key == key && s.changes {
				return p.want.String(), !p.want.delete
			}
		}
		c := currentOf(state, key)
		return c.String(), rows.decides(c, key)
	}
}

// reach finds the rows that the key concerns.
func (s *step) reach(w want, after func(string) (string, bool), rows fleet) {
	for _, row := range rows.asking(s.key) {
		keys := rows.rows[row]
		at := slices.IndexFunc(keys, func(key string) bool { _, ok := after(key); return ok })
		switch here := slices.Index(keys, s.key); {
		case at >= 0 && at < here:
			s.masked = append(s.masked, row)
		case w.delete && at >= 0:
			state, _ := after(keys[at])
			s.falls = append(s.falls, fall{row, keys[at], state})
			s.servers = append(s.servers, row)
		default:
			s.servers = append(s.servers, row)
		}
	}
}

// writes returns how many keys change.
func (p *plan) writes() int {
	n := 0
	for _, s := range p.steps {
		if s.changes {
			n++
		}
	}
	return n
}

// changes returns what to write, and the keys that must still be as wanted.
func (p *plan) changes() []kv.Change {
	changes := make([]kv.Change, 0, len(p.steps))
	for _, s := range p.steps {
		changes = append(changes, kv.Change{Key: s.key, Value: s.value, Delete: p.want.delete, Keep: !s.changes})
	}
	return changes
}

// guard refuses to put in rotation what somebody else took out, and to touch
// what somebody else holds.
func (p *plan) guard() error {
	if p.want.force {
		return nil
	}
	for _, s := range p.steps {
		if s.changes && s.from.foreign(p.by) && undoes(s.from.value.State, p.want) {
			return refusal(fmt.Errorf("%s is %v by %s%s: ask them, or add --force; nothing was written",
				s.key, s.from.value.State, s.from.by(), because(s.from.note.Reason)))
		}
	}
	return nil
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ` ("` + desired.Printable(reason) + `")`
}

// undoes reports whether w would end what the state from is for.
func undoes(from desired.State, w want) bool {
	switch from {
	case desired.Ready:
		return false
	case desired.Hold:
		return w.delete || w.state != desired.Hold
	}
	return w.delete || w.state != desired.Drain && w.state != desired.Maint
}
