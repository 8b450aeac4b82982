package responder

import (
	"sync"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
)

// A snapshot is one good state file, ready to be answered from. It does not change.
type snapshot struct {
	file    *statefile.File
	lookup  func(key []byte) (desired.State, bool)
	content func() string // checksum of the keys, made when it is first asked for
}

func newSnapshot(f *statefile.File) *snapshot {
	return &snapshot{file: f, lookup: newIndex(f.Rows).lookup, content: sync.OnceValue(f.Content)}
}

// source says where the snapshot comes from and what is on disk now. It does
// not change.
type source struct {
	read    time.Time // render's last accepted read of Consul: the file's modification time
	problem string    // why the file on disk is not the one served; empty if it is
}
