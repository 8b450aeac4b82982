package responder

import (
	"hash/maphash"
	"math/bits"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
)

// seed keeps those who choose keys from choosing collisions.
var seed = maphash.MakeSeed()

// An index finds rows by key: an open-addressed table of their places. For
// 100,000 keys it is made in a third of the time of a map, which counts while a
// large file is replaced every second, and holds nothing for the garbage
// collector to look at.
type index struct {
	rows  *statefile.Table
	slots []uint32 // place in rows plus one, 0 if free; its length is a power of two
}

func newIndex(rows *statefile.Table) *index {
	// At most half full, so that a search ends soon.
	x := &index{rows: rows, slots: make([]uint32, 2<<bits.Len(uint(rows.Len())))}
	mask := uint64(len(x.slots) - 1)
	for i := range rows.Len() {
		at := maphash.String(seed, rows.Key(i)) & mask
		for x.slots[at] != 0 {
			at = (at + 1) & mask
		}
		x.slots[at] = uint32(i) + 1
	}
	return x
}

// lookup returns the state of a key, and whether it has one.
func (x *index) lookup(key []byte) (desired.State, bool) {
	mask := uint64(len(x.slots) - 1)
	for at := maphash.Bytes(seed, key) & mask; x.slots[at] != 0; at = (at + 1) & mask {
		if i := int(x.slots[at] - 1); x.rows.Key(i) == string(key) {
			return x.rows.State(i), true
		}
	}
	return desired.Ready, false
}
