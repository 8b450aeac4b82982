package statefile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"
)

// MaxSize is the greatest size of a state file that is read, in bytes.
const MaxSize = 512 << 20

// Load reads and parses the file at path. The time is its modification time:
// when render last had an answer from Consul that it accepted.
func Load(path string) (*File, time.Time, error) {
	r := Reader{path: path}
	t, at, err := r.Look()
	if err != nil {
		return nil, at, err
	}
	return t.File(), at, nil
}

// A Reader follows one state file. Its zero value is not usable; see [NewReader].
// It is for one goroutine.
type Reader struct {
	path string
	last Version
	end  []byte // last line of the good file that was returned last
	good *Table // of that file
	err  error  // what was wrong with the file that last names
}

// NewReader returns a reader of the file at path, which need not exist yet.
func NewReader(path string) *Reader { return &Reader{path: path} }

// Look reads the file if it is another one than at the last look. It returns
// the new state, or nil if nothing but the modification time changed; and the
// modification time, which is the time of the last accepted read of Consul.
//
// An error means that there is no good file at path now. It is returned again,
// without reading again, until the file changes.
func (r *Reader) Look() (*Table, time.Time, error) {
	f, info, err := openRegular(r.path)
	if err != nil {
		r.last, r.err = Version{}, nil
		return nil, time.Time{}, fmt.Errorf("reading state: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	id := VersionOf(info)
	if id == r.last {
		return nil, id.mtime, r.err
	}
	if !id.written() && r.touched(f, id) {
		r.last = id
		return nil, id.mtime, nil
	}
	return r.read(f, id)
}

// touched reports whether f is the good file of the last look with another
// modification time: the same inode and size, and the same seal. With the same
// time it is not what [Touch] leaves: somebody may have put the time back.
func (r *Reader) touched(f *os.File, id Version) bool {
	if r.err != nil || r.end == nil || id.ino != r.last.ino || id.dev != r.last.dev || id.size != r.last.size || id.mtime.Equal(r.last.mtime) {
		return false
	}
	end := make([]byte, len(r.end))
	_, err := f.ReadAt(end, id.size-int64(len(end)))
	return err == nil && bytes.Equal(end, r.end)
}

func (r *Reader) read(f *os.File, id Version) (*Table, time.Time, error) {
	table, data, err := load(f, id.size, r.good)
	r.last, r.err = id, nil
	if err != nil {
		r.err = fmt.Errorf("reading state %s: %w", r.path, err)
		if time.Since(id.ctime) < settle {
			// It may be in the middle of being written in place, within one
			// tick of the file system's clock: look once more.
			r.last = Version{}
		}
		return nil, id.mtime, r.err
	}
	r.end = bytes.Clone(data[bytes.LastIndexByte(data[:len(data)-1], '\n')+1:])
	r.good = table
	return table, id.mtime, nil
}

// load reads and parses f; size is what it has, and it may grow meanwhile.
func load(f io.Reader, size int64, last *Table) (table *Table, data []byte, err error) {
	if data, err = readAtMost(f, size, MaxSize); err != nil {
		return nil, nil, err
	}
	table, err = ParseTable(data, last)
	return table, data, err
}

// settle is longer than a tick of any file system's clock.
const settle = 50 * time.Millisecond
