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
	states  map[string]desired.State // never nil
	content func() string            // checksum of the keys, made when it is first asked for
}

func newSnapshot(f *statefile.File) *snapshot {
	s := &snapshot{file: f, states: make(map[string]desired.State, len(f.Rows)), content: sync.OnceValue(f.Content)}
	for _, row := range f.Rows {
		s.states[row.Key] = row.State
	}
	return s
}

// source says where the snapshot comes from and what is on disk now. It does
// not change.
type source struct {
	read    time.Time // render's last accepted read of Consul: the file's modification time
	problem string    // why the file on disk is not the one served; empty if it is
}
