package cli

import (
	"fmt"
	"strings"

	"hadrain/internal/desired"
	"hadrain/internal/kv"
)

// advice returns what an operator should know before or after saying y, one
// line each: rows that the change does not reach, and what may surprise.
func (p *plan) advice(rows fleet, state *kv.State) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, s := range p.steps {
		if s.foreign {
			add("%s is already %v by %s%s: left as it is (--force takes it over)", s.key, s.from.value.State, s.from.by(), because(s.from.note.Reason))
		}
		for _, row := range s.masked {
			key, value := rows.decider(rows.rows[row], state)
			add("%s ignores %s: its key %s says %s and wins", row, s.key, key, value)
		}
		for _, f := range s.falls {
			if s.changes {
				add("%s falls back to %s, which says %s", f.row, f.key, f.state)
			} else if f.key != s.key {
				add("%s has no value of its own: it follows %s, which says %s", f.row, f.key, f.state)
			}
		}
		if p.want.drained && s.from.ready() {
			add("%s is ready, which undrain leaves alone; hadrain clear %s deletes it", s.key, s.key)
		}
		if pins(s, p.want) {
			add("%s is pinned: its own key wins over its groups%s; hadrain clear %s, not undrain, gives it back to them", s.key, groupsOf(s.key, rows), s.key)
		}
	}
	if !p.want.delete && p.want.state == desired.Hold {
		add("hold: HAProxy keeps what it has now; a reload of HAProxy forgets it")
	}
	return lines
}

// pins reports whether the step puts a row in rotation by its own key.
func pins(s step, w want) bool {
	_, weight := w.state.Percent()
	return !w.delete && s.changes && strings.Contains(s.key, "/") && (w.state == desired.Ready || weight)
}

func groupsOf(row string, rows fleet) string {
	var groups []string
	for _, key := range rows.rows[row] {
		if key != row {
			groups = append(groups, key)
		}
	}
	if len(groups) == 0 {
		return ""
	}
	return " (" + strings.Join(groups, ", ") + ")"
}

// decider returns the first of keys that has a value, and what it says.
func (f *fleet) decider(keys []string, state *kv.State) (key, value string) {
	for _, key := range keys {
		if c := currentOf(state, key); f.decides(c, key) {
			return key, c.String()
		}
	}
	return "", ""
}

// unasked returns a warning for each literal key that no known row asks for.
func (p *plan) unasked(rows fleet) []string {
	var lines []string
	if p.want.delete {
		return nil
	}
	for _, s := range p.steps {
		switch {
		case !s.changes || len(s.servers)+len(s.masked) > 0:
		case rows.answered() == 0:
			lines = append(lines, fmt.Sprintf("whether any load balancer asks for %s could not be checked: %s", s.key, rows.silence()))
		default:
			lines = append(lines, fmt.Sprintf("nobody asks for %s: none of %s has this key (responders that answered: %d of %d)",
				s.key, desired.Count(len(rows.rows), "row"), rows.answered(), len(rows.reports)))
		}
	}
	return lines
}

// unasked says that a key without a value is one that nobody asks for; "" if
// somebody does.
func (f *fleet) unasked(key string) string {
	switch {
	case len(f.asking(key)) > 0:
		return ""
	case f.answered() == 0:
		return fmt.Sprintf("%s has no value; whether any load balancer asks for it could not be checked: %s", key, f.silence())
	case f.answered() < len(f.reports):
		return fmt.Sprintf("no load balancer that answers asks for %s, and it has no value", key)
	}
	return fmt.Sprintf("no load balancer asks for %s, and it has no value", key)
}

// silence says why no responder gave a report.
func (f *fleet) silence() string {
	var whys []string
	for _, r := range f.reports {
		if r.err != nil {
			whys = append(whys, fmt.Sprintf("responder %s: %v", r.url, r.err))
		}
	}
	if len(whys) == 0 {
		return "no responder is named (--responder URL)"
	}
	return strings.Join(whys, "; ")
}
