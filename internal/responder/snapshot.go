package responder

import (
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
)

// A snapshot is one good state file, ready to be answered from. It does not change.
type snapshot struct {
	*statefile.Table
	lookup func(key []byte) (desired.State, bool)
}

func newSnapshot(t *statefile.Table) *snapshot {
	return &snapshot{Table: t, lookup: newIndex(t).lookup}
}

// source says where the snapshot comes from and what is on disk now. It does
// not change.
type source struct {
	read    time.Time // render's last accepted read of Consul: the file's modification time
	problem string    // why the file on disk is not the one served; empty if it is
}
