package statefile

import (
	"io/fs"
	"syscall"
	"time"
)

// A Version tells one content of a file from another, by == and without reading
// it, unless it was changed twice within a tick of the file system's clock. Its
// zero value is of no file.
type Version struct {
	dev, ino uint64
	size     int64
	mtime    time.Time
	ctime    time.Time // of the last change of anything, which nobody can set back
}

// VersionOf returns the version of a file that info was read from.
func VersionOf(info fs.FileInfo) Version {
	v := Version{size: info.Size(), mtime: info.ModTime()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok { // as on Linux
		v.dev, v.ino, v.ctime = sys.Dev, sys.Ino, time.Unix(sys.Ctim.Unix())
	}
	return v
}

// written reports whether the file was last written to, and not touched: a write
// sets both of its times to the same, and [Touch] only one. "drain" is as long as
// "ready", so an edit in place need not show in anything else.
func (v Version) written() bool { return v.mtime.Equal(v.ctime) }
