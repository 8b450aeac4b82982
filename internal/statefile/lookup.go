package statefile

import (
	"hash/maphash"
	"math/bits"

	"hadrain/internal/desired"
)

// seed keeps those who choose keys from choosing collisions.
var seed = maphash.MakeSeed()

// slots find rows by key: an open-addressed table of their numbers plus one, 0
// where it is free. Its length is a power of two. For 100,000 keys it is made in
// a third of the time of a map, which counts while a large file is replaced
// every second, and holds nothing for the garbage collector to look at.
type slots []uint32

// index makes the slots of t, unless it has those of a table with the same keys.
func (t *Table) index() {
	if t.slots != nil {
		return
	}
	// At most half full, so that a search ends soon.
	t.slots = make(slots, 2<<bits.Len(uint(t.Len())))
	mask := uint64(len(t.slots) - 1)
	for i := range t.places {
		at := maphash.String(seed, t.Key(i)) & mask
		for t.slots[at] != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = uint32(i) + 1
	}
}

// Lookup returns the state of a key, and whether it has one. It allocates nothing.
func (t *Table) Lookup(key []byte) (desired.State, bool) {
	mask := uint64(len(t.slots) - 1)
	for at := maphash.Bytes(seed, key) & mask; t.slots[at] != 0; at = (at + 1) & mask {
		if i := int(t.slots[at] - 1); t.Key(i) == string(key) {
			return t.State(i), true
		}
	}
	return desired.Ready, false
}
