package devstore

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// tombstoneTTL is how long the index of a prefix remembers its deleted keys
// (Consul's TombstoneTTL).
const tombstoneTTL = 15 * time.Minute

// An entry is one key, in the shape and field order of Consul's JSON. It never
// changes once a state holds it.
type entry struct {
	LockIndex   uint64
	Key         string
	Flags       uint64
	Value       []byte
	Session     string `json:",omitempty"`
	CreateIndex uint64
	ModifyIndex uint64
}

func (e *entry) same(o *entry) bool {
	return e.LockIndex == o.LockIndex && e.Flags == o.Flags &&
		string(e.Value) == string(o.Value) && e.Session == o.Session
}

// A tombstone keeps the index of a deleted key, or of a prefix deleted at once.
type tombstone struct {
	key   string
	index uint64
	at    time.Time
}

// A state is everything the store holds at one index. It never changes; a write
// replaces it and closes next.
type state struct {
	entries      []*entry // sorted by key
	tombstones   []tombstone
	sessions     []*session           // sorted by id
	delays       map[string]time.Time // key to the end of its lock delay
	kvIndex      uint64               // of the last change of any key, 0 before the first
	sessionIndex uint64
	next         chan struct{}
}

// find returns the entry of a key, or nil, and where it is or would be.
func (s *state) find(key string) (int, *entry) {
	i, ok := slices.BinarySearchFunc(s.entries, key, func(e *entry, k string) int {
		return strings.Compare(e.Key, k)
	})
	if !ok {
		return i, nil
	}
	return i, s.entries[i]
}

// span returns the bounds of the entries below a prefix.
func (s *state) span(prefix string) (from, to int) {
	from, _ = s.find(prefix)
	to = from
	for to < len(s.entries) && strings.HasPrefix(s.entries[to].Key, prefix) {
		to++
	}
	return from, to
}

// list returns the entries below a prefix and the index that a query for it
// reports: the largest one of entries and tombstones below it, or that of the
// whole table when there are none.
func (s *state) list(prefix string) (uint64, []*entry) {
	from, to := s.span(prefix)
	found := s.entries[from:to]
	if prefix == "" {
		return s.kvIndex, found
	}
	var index uint64
	for _, e := range found {
		index = max(index, e.ModifyIndex)
	}
	now := time.Now()
	for _, t := range s.tombstones {
		if strings.HasPrefix(t.key, prefix) && now.Sub(t.at) < tombstoneTTL {
			index = max(index, t.index)
		}
	}
	if index == 0 {
		index = s.kvIndex
	}
	return index, found
}

// A draft is a private copy of a state that one command edits.
type draft struct {
	state
	index   uint64 // of the command
	now     time.Time
	changed bool // something a reader can see is different
}

func newDraft(from *state, index uint64) *draft {
	d := &draft{state: *from, index: index, now: time.Now()}
	d.entries = slices.Clone(from.entries)
	return d
}

func (d *draft) touchKV() {
	d.kvIndex = d.index
	d.changed = true
}

func (d *draft) touchSessions() {
	d.sessionIndex = d.index
	d.changed = true
}

// bury adds a tombstone and drops those that are too old or replaced.
func (d *draft) bury(key string) {
	kept := make([]tombstone, 0, len(d.tombstones)+1)
	for _, t := range d.tombstones {
		if t.key != key && d.now.Sub(t.at) < tombstoneTTL {
			kept = append(kept, t)
		}
	}
	d.tombstones = append(kept, tombstone{key: key, index: d.index, at: d.now})
}

// delayLock refuses locks of a key until the given time.
func (d *draft) delayLock(key string, until time.Time) {
	kept := maps.Clone(d.delays)
	maps.DeleteFunc(kept, func(_ string, end time.Time) bool { return !end.After(d.now) })
	if kept == nil {
		kept = make(map[string]time.Time)
	}
	kept[key] = until
	d.delays = kept
}

// delayed reports whether a lock delay protects the key.
func (d *draft) delayed(key string) bool { return d.delays[key].After(d.now) }
