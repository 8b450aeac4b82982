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
	// leastInterval is the least interval that counts: agent-inter jitters, and
	// two HAProxy processes ask during a reload.
	leastInterval = time.Second
	// forgetAfter is how long a row stays silent before it counts as removed
	// from haproxy.cfg.
	forgetAfter = 10 * time.Minute
	// provenAfter is how often a row must be asked for to be taken for HAProxy's.
	// People ask too (hadrain query, telnet), and stop: that is no alarm.
	provenAfter = 3
	// forgetUnproven is how long a row stays silent that was asked for less often.
	forgetUnproven = 2 * time.Minute
	// maxLine is how much of a question is remembered, in bytes.
	maxLine = 512
	// pruneInterval is how often a full memory is searched for room.
	pruneInterval = time.Second
)

// A row is what is remembered of one question that is asked again and again.
type row struct {
	line     []byte // as sent, cut to maxLine
	other    []byte // the last question, if it was another one; else nil
	times    int    // how often asked for, up to provenAfter
	reply    string
	key      int // place of the key that answered, -1 if none
	index    uint64
	since    time.Time     // when reply was first given
	asked    time.Time     // last
	interval time.Duration // between the last two questions; 0: asked once

	// The same in active time.
	seen time.Duration
	pace time.Duration
}

// rows are the rows by their first keys.
type rows struct {
	mu     sync.Mutex
	most   int
	byKey  map[string]*row
	pruned time.Time

	asked time.Time // the last question of any row
	// active is the time during which rows were asked for: a pause of all of
	// them, in which HAProxy was down, does not count. So the first check after
	// a pause does not make its siblings silent.
	active time.Duration
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
	if gap := at.Sub(rs.asked); !rs.asked.IsZero() && gap > 0 {
		rs.active += min(gap, max(r.interval, leastInterval))
	}
	rs.asked = at
	r.note(brief(line), a, at, rs.active)
}

// brief cuts a line to maxLine between two words: half a key would be another.
func brief(line []byte) []byte {
	if len(line) <= maxLine {
		return line
	}
	// No key is that long: without a blank there is nothing to remember.
	return line[:bytes.LastIndexAny(line[:maxLine], " \t")+1]
}

func (r *row) note(line []byte, a agentcheck.Answer, at time.Time, active time.Duration) {
	if !r.takes(line) {
		return
	}
	r.times = min(r.times+1, provenAfter)
	if !r.asked.IsZero() {
		r.interval, r.pace = at.Sub(r.asked), active-r.seen
	}
	r.seen = active
	if r.reply != a.Reply {
		r.reply, r.since = a.Reply, at
	}
	r.key, r.index, r.asked = a.Key, a.Index, at
}

// takes reports whether a question is the row's. Another one than before, with
// other groups or options, is so from the second time in a row: haproxy.cfg has
// changed. Once is a person who asks, and says nothing of what HAProxy was told.
func (r *row) takes(line []byte) bool {
	same := bytes.Equal(r.line, line)
	if !same && r.line != nil && !bytes.Equal(r.other, line) {
		r.other = bytes.Clone(line)
		return false
	}
	if !same {
		r.line = bytes.Clone(line)
	}
	r.other = nil
	return true
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
		if rs.missed(r) {
			delete(rs.byKey, key)
		}
	}
}

// missed reports whether the row was not asked for while others were.
func (rs *rows) missed(r *row) bool {
	return rs.active-r.seen > silentAfter*max(r.pace, leastInterval)
}

// silent reports whether HAProxy has stopped asking for the row.
func (rs *rows) silent(r *row) bool { return r.times >= provenAfter && rs.missed(r) }

// forgotten reports whether the row is to be forgotten.
func (rs *rows) forgotten(r *row) bool {
	silence := rs.active - r.seen
	return silence > forgetAfter || r.times < provenAfter && silence > forgetUnproven
}

// list returns copies of all rows that are not forgotten, sorted by first key.
func (rs *rows) list() []listed {
	rs.mu.Lock()
	all := make([]listed, 0, len(rs.byKey))
	for key, r := range rs.byKey {
		if rs.forgotten(r) {
			delete(rs.byKey, key)
			continue
		}
		all = append(all, listed{key, *r, rs.silent(r)})
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

// keys returns the keys that the row asked for, in the order sent. One that no
// state can have is anything that a peer cares to send.
func (l *listed) keys() []string {
	q, _ := agentcheck.ParseQuestion(l.line, 0)
	var keys []string
	for next := q.Next(); len(next) > 0; next = q.Next() {
		key := string(next)
		if desired.CheckKey(key) != nil {
			key = desired.Printable(key)
		}
		keys = append(keys, key)
	}
	return keys
}
