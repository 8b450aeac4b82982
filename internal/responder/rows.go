package responder

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"

	"hadrain/internal/agentcheck"
	"hadrain/internal/desired"
)

const (
	// silentAfter is how many of its intervals a row may miss.
	silentAfter = 3
	// leastInterval is the least interval that counts: HAProxy's agent-inter
	// jitters, and two processes ask during a reload.
	leastInterval = time.Second
	// forgetAfter is how long a row stays silent before it counts as removed
	// from haproxy.cfg.
	forgetAfter = 10 * time.Minute
	// maxLine is how much of a question is remembered, in bytes.
	maxLine = 512
	// pruneInterval is how often a full memory is searched for room.
	pruneInterval = time.Second
)

// A row is what is remembered of one question that is asked again and again.
type row struct {
	line     []byte // as sent, cut to maxLine
	reply    string
	key      int // place of the key that answered, -1 if none
	index    uint64
	since    time.Time     // when reply was first given
	asked    time.Time     // last
	interval time.Duration // between the last two questions; 0: asked once
}

// rows are the rows by their first keys.
type rows struct {
	mu     sync.Mutex
	most   int
	byKey  map[string]*row
	asked  time.Time // the last question of any row
	pruned time.Time
}

func newRows(most int) *rows { return &rows{most: most, byKey: map[string]*row{}} }

// note remembers a question that was answered.
func (rs *rows) note(line []byte, a agentcheck.Answer, at time.Time) {
	q, ok := agentcheck.ParseQuestion(line, 0)
	if !ok {
		return
	}
	first := q.Next()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.byKey[string(first)]
	if r == nil {
		if r = rs.add(string(first), at); r == nil {
			return
		}
	}
	r.note(line[:min(len(line), maxLine)], a, at)
	rs.asked = at
}

func (r *row) note(line []byte, a agentcheck.Answer, at time.Time) {
	if !bytes.Equal(r.line, line) {
		r.line = bytes.Clone(line)
	}
	if !r.asked.IsZero() {
		r.interval = at.Sub(r.asked)
	}
	if r.reply != a.Reply {
		r.reply, r.since = a.Reply, at
	}
	r.key, r.index, r.asked = a.Key, a.Index, at
}

// add makes a row. It returns nil if there is no room, or for a key that no
// state can have: such are not worth remembering.
func (rs *rows) add(key string, at time.Time) *row {
	if desired.CheckKey(key) != nil {
		return nil
	}
	if len(rs.byKey) >= rs.most {
		if at.Sub(rs.pruned) < pruneInterval {
			return nil
		}
		if rs.prune(at); len(rs.byKey) >= rs.most {
			return nil
		}
	}
	r := &row{}
	rs.byKey[key] = r
	return r
}

// prune forgets what is silent, however short: rows that are still asked for
// need the room.
func (rs *rows) prune(at time.Time) {
	rs.pruned = at
	for key, r := range rs.byKey {
		if r.silent(rs.asked) {
			delete(rs.byKey, key)
		}
	}
}

// silent reports whether the row has missed questions while others, the last of
// them at last, were asked.
func (r *row) silent(last time.Time) bool { return last.Sub(r.asked) > silentAfter*r.usual() }

func (r *row) usual() time.Duration { return max(r.interval, leastInterval) }

// list returns copies of all rows that are not forgotten, sorted by first key.
func (rs *rows) list() []listed {
	rs.mu.Lock()
	all := make([]listed, 0, len(rs.byKey))
	for key, r := range rs.byKey {
		if rs.asked.Sub(r.asked) > forgetAfter {
			delete(rs.byKey, key)
			continue
		}
		all = append(all, listed{key, *r, r.silent(rs.asked)})
	}
	rs.mu.Unlock()
	slices.SortFunc(all, func(a, b listed) int { return strings.Compare(a.first, b.first) })
	return all
}

// listed is one row as it was at one moment.
type listed struct {
	first string
	row
	silent bool
}

// keys returns the keys that the row asked for, in the order sent.
func (l *listed) keys() []string {
	q, _ := agentcheck.ParseQuestion(l.line, 0)
	var keys []string
	for key := q.Next(); len(key) > 0; key = q.Next() {
		keys = append(keys, string(key))
	}
	return keys
}
