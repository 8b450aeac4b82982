package dev

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/haproxy"
	"hadrain/internal/statefile"
)

// probe looks once. ok is whether what the story waits for is there; seen is
// what there is, for people, in both cases.
type probe func(ctx context.Context) (seen string, ok bool)

const (
	// lookGrace is how long one look may take.
	lookGrace = 5 * time.Second
	// pollEvery is how often something without an event of its own is looked at.
	pollEvery = 20 * time.Millisecond
)

// await looks until the probe is ok. The error says what was seen last. The
// deadline does not cut a look short: what is seen then is only the deadline.
func await(ctx context.Context, p probe, deadline time.Duration) (string, error) {
	end := time.NewTimer(deadline)
	defer end.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		seen, ok := look(ctx, p)
		if ok {
			return seen, nil
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-end.C:
			return "", fmt.Errorf("after %v still: %s", deadline, seen)
		case <-tick.C:
		}
	}
}

func look(ctx context.Context, p probe) (seen string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, lookGrace)
	defer cancel()
	return p(ctx)
}

// shows waits until HAProxy shows all servers in a state, such as DRAIN, with
// the administrative flag that only a decision sets.
func (e *environment) shows(want string, flag haproxy.Admin, keys []string) probe {
	return func(ctx context.Context) (string, bool) {
		live, err := e.live(ctx)
		if err != nil {
			return err.Error(), false
		}
		states, err := e.states(ctx)
		if err != nil {
			return err.Error(), false
		}
		var seen []string
		all := true
		for _, key := range keys {
			status, state := live[key], states[key]
			seen = append(seen, fmt.Sprintf("%s is %s", key, status.Status))
			// Also not "UP 1/3", which is on its way down.
			all = all && (status.Status == want || status.Status == want+" (agent)") && state.Admin == flag && state.Percent() == 100
		}
		return strings.Join(seen, ", "), all
	}
}

// quiet waits until n more answers have come, all of the last n from other
// servers.
func (e *environment) quiet(n int, keys []string) probe {
	from := -1
	return func(context.Context) (string, bool) {
		c := e.traffic.counts()
		if from < 0 {
			from = c.answers
		}
		others := min(c.quiet(keys...), c.answers-from)
		return fmt.Sprintf("the last %s came from other servers, %s failed", desired.Count(others, "answer"), desired.Count(c.failed, "request")), others >= n
	}
}

// answering waits until each of the servers has answered since now.
func (e *environment) answering(keys []string) probe {
	var base *counts
	return func(context.Context) (string, bool) {
		c := e.traffic.counts()
		if base == nil {
			base = c
		}
		var silent []string
		for _, key := range keys {
			if c.served[key] == base.served[key] {
				silent = append(silent, key)
			}
		}
		if silent != nil {
			return "no answer yet from " + strings.Join(silent, ", "), false
		}
		return fmt.Sprintf("each of %s answers requests, %d failed", strings.Join(keys, ", "), c.failed), true
	}
}

// checks waits for n more agent checks of a server, as the responder sees them.
func (e *environment) checks(n int, key string) probe {
	var last time.Time
	count := -1 // the first look only finds the check before
	return func(ctx context.Context) (string, bool) {
		doc, err := e.responderStatus(ctx)
		if err != nil {
			return err.Error(), false
		}
		answer := "nothing"
		for _, row := range doc.Rows {
			if row.Row == key {
				answer = row.Answer
				if row.Asked.After(last) {
					last = row.Asked
					count++
				}
			}
		}
		return fmt.Sprintf("%s of %s, answered %q", desired.Count(max(count, 0), "more agent check"), key, answer), count >= n
	}
}

// ramps waits until slowstart has raised the weight of all servers step by
// step, and tells the steps that were seen.
func (e *environment) ramps(keys []string) probe {
	steps := make(map[string][]string, len(keys))
	up := e.shows("UP", 0, keys)
	return func(ctx context.Context) (string, bool) {
		live, err := e.live(ctx)
		if err != nil {
			return err.Error(), false
		}
		states, err := e.states(ctx)
		if err != nil {
			return err.Error(), false
		}
		_, done := up(ctx)
		var seen []string
		for _, key := range keys {
			step := fmt.Sprintf("%d%%", live[key].Throttle)
			if states[key].Op == haproxy.OpStarting && live[key].Throttle < 100 && !slices.Contains(steps[key], step) {
				steps[key] = append(steps[key], step)
			}
			done = done && states[key].Op == haproxy.OpRunning && len(steps[key]) > 0
			seen = append(seen, fmt.Sprintf("%s is %s after %s of its weight", key, live[key].Status, strings.Join(steps[key], ", ")))
		}
		return strings.Join(seen, "; "), done
	}
}

// holds waits until the state file has a state for the key, and shows the line.
func (e *environment) holds(key string, want desired.State) probe {
	return func(context.Context) (string, bool) {
		file, _, err := statefile.Load(e.statePath)
		if err != nil {
			return err.Error(), false
		}
		for _, row := range file.Rows {
			if row.Key == key {
				return "the state file says: " + statefile.Line(row, 0), row.State == want && row.Rejected == ""
			}
		}
		return "the state file says nothing about " + key, false
	}
}

// stale waits until render says that it cannot read the store.
func (e *environment) stale() probe {
	return func(ctx context.Context) (string, bool) {
		doc, err := e.renderStatus(ctx)
		if err != nil {
			return err.Error(), false
		}
		age := time.Since(doc.LastAccepted).Truncate(100 * time.Millisecond)
		if doc.Refused == nil {
			return fmt.Sprintf("render read the store %v ago", age), false
		}
		return fmt.Sprintf("render read the store %v ago and says: %s", age, doc.Refused.Message), true
	}
}

// fresh waits until render has read the store after the time since.
func (e *environment) fresh(since time.Time) probe {
	return func(ctx context.Context) (string, bool) {
		doc, err := e.renderStatus(ctx)
		if err != nil {
			return err.Error(), false
		}
		age := time.Since(doc.LastAccepted).Truncate(100 * time.Millisecond)
		return fmt.Sprintf("render read the store %v ago", age), doc.LastAccepted.After(since) && doc.Refused == nil
	}
}
