package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
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
	last identity
	end  []byte // last line of the good file that was returned last
	good *Table // of that file
	err  error  // what was wrong with the file that last names
}

// NewReader returns a reader of the file at path, which need not exist yet.
func NewReader(path string) *Reader { return &Reader{path: path} }

// identity tells one version of a file from another.
type identity struct {
	dev, ino uint64
	size     int64
	mtime    time.Time
	ctime    time.Time // of the last change of anything, which nobody can set back
}

// Look reads the file if it is another one than at the last look. It returns
// the new state, or nil if nothing but the modification time changed; and the
// modification time, which is the time of the last accepted read of Consul.
//
// An error means that there is no good file at path now. It is returned again,
// without reading again, until the file changes.
func (r *Reader) Look() (*Table, time.Time, error) {
	// Without O_NONBLOCK a named pipe would hold this goroutine until somebody
	// writes to it, also past the end of the program's context.
	f, err := os.OpenFile(r.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		r.last, r.err = identity{}, nil
		return nil, time.Time{}, fmt.Errorf("reading state: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	id, written, err := identify(f)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("reading state %s: %w", r.path, err)
	}
	if id == r.last {
		return nil, id.mtime, r.err
	}
	if !written && r.touched(f, id) {
		r.last = id
		return nil, id.mtime, nil
	}
	return r.read(f, id)
}

// touched reports whether f is the good file of the last look with another
// modification time: the same inode and size, and the same seal. With the same
// time it is not what [Touch] leaves: somebody may have put the time back.
func (r *Reader) touched(f *os.File, id identity) bool {
	if r.err != nil || r.end == nil || id.ino != r.last.ino || id.dev != r.last.dev || id.size != r.last.size || id.mtime.Equal(r.last.mtime) {
		return false
	}
	end := make([]byte, len(r.end))
	_, err := f.ReadAt(end, id.size-int64(len(end)))
	return err == nil && bytes.Equal(end, r.end)
}

func (r *Reader) read(f *os.File, id identity) (*Table, time.Time, error) {
	table, data, err := load(f, id.size, r.good)
	r.last, r.err = id, nil
	if err != nil {
		r.err = fmt.Errorf("reading state %s: %w", r.path, err)
		if time.Since(id.ctime) < settle {
			// It may be in the middle of being written in place, within one
			// tick of the file system's clock: look once more.
			r.last = identity{}
		}
		return nil, id.mtime, r.err
	}
	r.end = bytes.Clone(data[bytes.LastIndexByte(data[:len(data)-1], '\n')+1:])
	r.good = table
	return table, id.mtime, nil
}

// load reads and parses f, unless it is too large to be read at all: size is
// what it has, and it may grow meanwhile.
func load(f io.Reader, size int64, last *Table) (table *Table, data []byte, err error) {
	if size <= MaxSize {
		if data, err = readAll(f, size); err != nil {
			return nil, nil, err
		}
		size = int64(len(data))
	}
	if size > MaxSize {
		return nil, nil, fmt.Errorf("larger than %d bytes", MaxSize)
	}
	table, err = ParseTable(data, last)
	return table, data, err
}

// readAll reads into one buffer of the size that is expected, because that stays
// with the Table: io.ReadAll allocates several, and keeps one that is too large.
func readAll(f io.Reader, size int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(size) + bytes.MinRead)
	_, err := b.ReadFrom(io.LimitReader(f, MaxSize+1))
	return b.Bytes(), err
}

// settle is longer than a tick of any file system's clock.
const settle = 50 * time.Millisecond

// identify also reports whether the file was last written to, and not touched:
// a write sets both of its times to the same, and Touch only one. "drain" is as
// long as "ready", so an edit in place need not show in anything else.
func identify(f *os.File) (id identity, written bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return id, false, err
	}
	if !info.Mode().IsRegular() {
		return id, false, fmt.Errorf("not a regular file (%s)", info.Mode().Type())
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return id, false, errors.ErrUnsupported
	}
	id = identity{dev: sys.Dev, ino: sys.Ino, size: info.Size(), mtime: info.ModTime(), ctime: time.Unix(sys.Ctim.Unix())}
	return id, id.mtime.Equal(id.ctime), nil
}
