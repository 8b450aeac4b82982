package devstore

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// How long a blocking query waits: without ?wait, at most, and the fraction of
// it that Consul adds at random so that many queries do not end at once.
const (
	defaultWait    = 5 * time.Minute
	maxWait        = 10 * time.Minute
	jitterFraction = 16
)

// options are the parameters that all reads share.
type options struct {
	minIndex uint64        // 0: answer at once
	wait     time.Duration // as asked for, not yet limited
}

// parseOptions reads a request's parameters; its errors have status 400. The
// consistency modes are checked and then ignored: there is only one truth.
func parseOptions(r *http.Request) (o options, err error) {
	q := r.URL.Query()
	stale, consistent := q.Has("stale"), q.Has("consistent")
	if text := q.Get("max_stale"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			return o, badRequest("Invalid max_stale value %q", text)
		}
		stale = stale || d > 0
	}
	switch {
	case stale && consistent:
		return o, badRequest("Cannot specify ?stale with ?consistent, conflicting semantics.")
	case q.Has("cached") && consistent:
		return o, badRequest("Cannot specify ?cached with ?consistent, conflicting semantics.")
	}
	if err := checkCacheControl(r.Header.Get("Cache-Control")); err != nil {
		return o, err
	}
	if text := q.Get("wait"); text != "" {
		if o.wait, err = time.ParseDuration(text); err != nil {
			return o, badRequest("Invalid wait time")
		}
	}
	if text := q.Get("index"); text != "" {
		if o.minIndex, err = strconv.ParseUint(text, 10, 64); err != nil {
			return o, badRequest("Invalid index")
		}
	}
	return o, nil
}

func checkCacheControl(header string) error {
	for directive := range strings.SplitSeq(strings.ToLower(header), ",") {
		directive = strings.TrimSpace(directive)
		for _, name := range []string{"max-age=", "stale-if-error="} {
			text, ok := strings.CutPrefix(directive, name)
			if !ok {
				continue
			}
			if _, err := strconv.Atoi(text); err != nil {
				return badRequest("Invalid Cache-Control header.")
			}
		}
	}
	return nil
}

// timeout is the limit of one blocking query.
func (o options) timeout() time.Duration {
	wait := o.wait
	if wait <= 0 {
		wait = defaultWait
	}
	wait = min(wait, maxWait)
	if jitter := wait / jitterFraction; jitter > 0 {
		wait += rand.N(jitter)
	}
	return wait
}

// found is what a read sees in one state.
type found struct {
	index   uint64
	missing bool // the one thing asked for does not exist
}

// read answers a query: at once without an index, else as soon as the index is
// above the given one, or when the time is up. An index that is ahead of the
// store's (from a lost epoch) waits as any other: Consul does so too, and
// clients must cope. A query for one missing thing that woke for something else
// goes back to sleep although the table's index has risen.
func (s *Store) read(ctx context.Context, o options, find func(*state) found) (found, error) {
	if o.minIndex == 0 {
		if s.done.Err() != nil {
			return found{}, errNoLeader
		}
		return look(s.cur.Load(), find), nil
	}
	timer := time.NewTimer(o.timeout())
	defer timer.Stop()
	for missed := false; ; {
		if s.done.Err() != nil {
			return found{}, errNoLeader
		}
		st := s.cur.Load()
		f := look(st, find)
		if f.missing && missed {
			o.minIndex = f.index
		}
		missed = missed || f.missing
		if f.index > o.minIndex {
			return f, nil
		}
		select {
		case <-st.next:
		case <-timer.C:
			return f, nil
		case <-s.done.Done():
		case <-ctx.Done():
			return found{}, ctx.Err()
		}
	}
}

// look runs find and keeps the index from being 0, with which a client would
// not block but spin.
func look(st *state, find func(*state) found) found {
	f := find(st)
	f.index = max(f.index, 1)
	return f
}

// setMeta writes the headers of an answered query.
func setMeta(w http.ResponseWriter, f found) {
	h := w.Header()
	h.Set("X-Consul-Index", strconv.FormatUint(f.index, 10))
	h.Set("X-Consul-Query-Backend", "blocking-query")
	setLeader(w, true)
}

func setLeader(w http.ResponseWriter, known bool) {
	w.Header().Set("X-Consul-KnownLeader", strconv.FormatBool(known))
	w.Header().Set("X-Consul-LastContact", "0")
}
