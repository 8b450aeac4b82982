package render

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"hadrain/internal/statefile"
)

// output keeps one file on disk as it was last rendered.
type output struct {
	path string
	data []byte // what the file should hold; nil: nothing was rendered yet

	holder

	dirty bool              // data is not on disk
	on    statefile.Version // of the file after it was last seen to hold data
	at    time.Time         // that touch gave the file
}

// A finding is what was found at the path.
type finding int

const (
	intact  finding = iota // what was rendered
	missing                // nothing
	altered                // something else, or something that cannot be read
)

// load takes what is on disk as rendered. It returns nil if there is nothing.
func (o *output) load() (*statefile.File, time.Time, error) {
	info, err := os.Stat(o.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("reading the state: %w", err)
	}
	data, err := statefile.ReadRegular(o.path, statefile.MaxSize)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("reading the state: %w", err)
	}
	file, err := statefile.Parse(data)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("reading the state %s: %w", o.path, err)
	}
	o.data, o.on, o.at = data, statefile.VersionOf(info), info.ModTime()
	return file, info.ModTime(), nil
}

// lock makes this process the only writer of the file.
func (o *output) lock() error { return o.lockOf(o.path) }

// set makes data what the file should hold.
func (o *output) set(data []byte) { o.data, o.dirty = data, true }

// write puts data on disk.
func (o *output) write() error {
	if err := o.lock(); err != nil {
		return err
	}
	if err := statefile.Write(o.path, o.data); err != nil {
		return err
	}
	// Somebody may have changed it already: look has to read it once.
	o.dirty, o.on = false, statefile.Version{}
	return nil
}

// touch gives the file the time of the last accepted read.
func (o *output) touch(at time.Time) error {
	before, err := o.stamp(at)
	if err != nil {
		return err
	}
	return o.settle(before, at)
}

// stamp sets the time of the file, and returns which one it was before.
func (o *output) stamp(at time.Time) (before statefile.Version, err error) {
	info, err := os.Lstat(o.path)
	if err != nil {
		return before, err
	}
	if !info.Mode().IsRegular() {
		return before, nil // somebody's link, say to /dev/null: what it leads to is not ours
	}
	err = statefile.Touch(o.path, at)
	// Of somebody else's file only the owner may set the time: another one is
	// written then, which is ours.
	o.dirty = o.dirty || errors.Is(err, fs.ErrPermission) && o.data != nil
	return statefile.VersionOf(info), err
}

// settle notes what is there after stamp. Of a file that somebody changed before
// or since, look is still to say so: it has another version, or not exactly the
// time. That also costs a look where the file system rounds the time.
func (o *output) settle(before statefile.Version, at time.Time) error {
	info, err := os.Lstat(o.path)
	if err != nil {
		return fmt.Errorf("touching the state: %w", err)
	}
	on := statefile.VersionOf(info)
	if before != o.on || !info.ModTime().Equal(at) {
		on = statefile.Version{}
	}
	o.on, o.at = on, at
	return nil
}

// near reports whether a file has the time that it was given: none is rounded by
// more than FAT does.
func near(a, b time.Time) bool { return a.Sub(b).Abs() <= 2*time.Second }

// look compares the file with what was rendered, without reading it as long as
// nobody touched it. Its time is a part of it: it says how old the state is.
func (o *output) look() finding {
	info, err := os.Lstat(o.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing
	case err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(o.data)):
		return altered
	case statefile.VersionOf(info) == o.on:
		return intact
	case !near(info.ModTime(), o.at):
		return altered
	}
	same, err := statefile.Holds(o.path, o.data)
	if errors.Is(err, fs.ErrPermission) {
		return intact // its mode stays as somebody set it: another file would be no better
	}
	if err != nil || !same {
		return altered
	}
	// Touched as it is, it cannot be edited any more without another time.
	o.on = statefile.VersionOf(info)
	return intact
}
