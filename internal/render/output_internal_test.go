package render

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What somebody else does to the file is seen, also if it is as long as before,
// if render touches the file in the same moment, and if only its time changed:
// that says how old the state is.
func TestLookSeesEverything(t *testing.T) {
	dir := t.TempDir()
	elsewhere := filepath.Join(dir, "elsewhere")
	o := &output{path: filepath.Join(dir, "state")}
	for name, harm := range map[string]func() error{
		"nothing":  func() error { return nil },
		"mode":     func() error { return os.Chmod(o.path, 0o600) },
		"edit":     func() error { return os.WriteFile(o.path, []byte("drain"), 0o644) },
		"touched":  func() error { return errors.Join(os.WriteFile(o.path, []byte("drain"), 0o644), o.touch(time.Now())) },
		"future":   func() error { return os.Chtimes(o.path, time.Time{}, time.Now().Add(time.Hour)) },
		"past":     func() error { return os.Chtimes(o.path, time.Time{}, time.Now().Add(-time.Hour)) },
		"link":     func() error { return errors.Join(os.Rename(o.path, elsewhere), os.Symlink(elsewhere, o.path)) },
		"dangling": func() error { return errors.Join(os.Remove(o.path), os.Symlink("nowhere", o.path)) },
		"device":   func() error { return errors.Join(os.Remove(o.path), os.Symlink(os.DevNull, o.path)) },
	} {
		o.set([]byte("ready"))
		if err := errors.Join(o.write(), o.touch(time.Now())); err != nil || o.look() != intact {
			t.Fatalf("%s: the file is not as it was written: %v", name, err)
		}
		if err := harm(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := altered
		if name == "nothing" || name == "mode" {
			want = intact
		}
		if got := o.look(); got != want {
			t.Errorf("%s: look() = %d, want %d", name, got, want)
		}
	}
	// The first touch comes after the write, and so may an edit.
	o.set([]byte("ready"))
	err := errors.Join(o.write(), os.WriteFile(o.path, []byte("drain"), 0o644), o.touch(time.Now()))
	if got := o.look(); err != nil || got != altered {
		t.Errorf("edited between write and touch: look() = %d, %v, want %d", got, err, altered)
	}
	if data, err := os.ReadFile(elsewhere); err != nil || string(data) != "ready" {
		t.Errorf("the file behind the link: %q, %v", data, err)
	}
	if err := o.unlock(); err != nil {
		t.Error(err)
	}
}

// What stands behind a link in the file's place is somebody else's, and so is its
// time.
func TestTouchFollowsNoLink(t *testing.T) {
	dir, old := t.TempDir(), time.Unix(1, 0)
	o, theirs := &output{path: filepath.Join(dir, "state")}, filepath.Join(dir, "theirs")
	err := errors.Join(os.WriteFile(theirs, nil, 0o644), os.Chtimes(theirs, old, old), os.Symlink(theirs, o.path))
	if err != nil {
		t.Fatal(err)
	}
	o.set(nil)
	if err := o.touch(time.Now()); err != nil || o.look() != altered {
		t.Errorf("touch() = %v, and look() = %d, want %d", err, o.look(), altered)
	}
	if info, err := os.Stat(theirs); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("the file behind the link: %v, %v, want the time that it had", info, err)
	}
}

// In whatever order render and somebody else set the file's time, what is there
// in the end is render's, or is seen not to be.
func TestLookAfterARace(t *testing.T) {
	o := &output{path: filepath.Join(t.TempDir(), "state")}
	o.set([]byte("ready"))
	if err := o.write(); err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		at := time.Now()
		done := make(chan error, 1)
		go func() { done <- os.Chtimes(o.path, time.Time{}, time.Unix(1, 0)) }()
		if err := errors.Join(o.touch(at), <-done); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(o.path)
		if err != nil {
			t.Fatal(err)
		}
		if found := o.look(); (found == intact) != near(info.ModTime(), at) {
			t.Fatalf("a file of %v, and render's time is %v: look() = %d", info.ModTime(), at, found)
		}
	}
	if err := o.unlock(); err != nil {
		t.Error(err)
	}
}
