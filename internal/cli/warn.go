package cli

import (
	"fmt"
	"strings"
	"time"

	"hadrain/internal/kv"
)

// oldState is the age from which the state of a load balancer is old: at rest,
// render confirms it every 10 s.
const oldState = 90 * time.Second

// lags returns a warning for each load balancer that does not follow what is
// written to root, whose read state is; a state without an id is that of a
// Consul that could not be read.
func (f *fleet) lags(state *kv.State, root string) []string {
	var lines []string
	for _, r := range f.reports {
		if r.err == nil && r.doc.State.Loaded {
			if why := r.lag(state, root); why != "" {
				lines = append(lines, fmt.Sprintf("load balancer %s %s", r.doc.Host, why))
			}
		}
	}
	return lines
}

// lag says why a load balancer does not follow; "" if it does, as far as one sees.
func (r *report) lag(state *kv.State, root string) string {
	has := r.doc.State
	age := time.Duration(has.Age * float64(time.Second)).Round(time.Second)
	switch {
	case has.Root != root:
		return fmt.Sprintf("follows the keys of %s/, these are of %s/: it will not follow; see --kv-root, here and there", has.Root, root)
	case state.ID != "" && has.ID != state.ID:
		theirs, ours := shortIDs(has.ID, state.ID)
		return fmt.Sprintf("follows id %s, Consul has %s: it will not follow; see wrong_sentinel in the runbook", theirs, ours)
	case age >= oldState:
		return fmt.Sprintf("has a state last confirmed %v ago: it may not follow; see \"the state is old\" in the runbook", age)
	}
	return ""
}

// shortIDs cuts ids for people, unless that takes away the difference.
func shortIDs(a, b string) (shortA, shortB string) {
	const enough = 8
	if len(a) <= enough || len(b) <= enough || a[:enough] == b[:enough] {
		return a, b
	}
	return a[:enough] + "…", b[:enough] + "…"
}

// globs returns a warning for each glob if a responder that knows rows may not
// have been heard.
func (f *fleet) globs(sels []selector) []string {
	var silent []string
	for _, r := range f.reports {
		if r.err != nil {
			silent = append(silent, fmt.Sprintf("responder %s did not answer (%v)", r.url, r.err))
		}
	}
	var lines []string
	for _, sel := range sels {
		if sel.key == "" && len(silent) > 0 {
			lines = append(lines, fmt.Sprintf("'%s' was matched against the rows that are known here; %s, so rows may be missing",
				sel.text, strings.Join(silent, ", ")))
		}
	}
	return lines
}
