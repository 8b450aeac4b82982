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
	elsewhere := filepath.Join(dir, "there") // as long as what the file holds, and so is a link to it
	o := &output{path: filepath.Join(dir, "state")}
	for name, harm := range map[string]func() error{
		"nothing":  func() error { return nil },
		"mode":     func() error { return os.Chmod(o.path, 0o600) },
		"edit":     func() error { return os.WriteFile(o.path, []byte("drain"), 0o644) },
		"touched":  func() error { return errors.Join(os.WriteFile(o.path, []byte("drain"), 0o644), o.touch(time.Now())) },
		"future":   func() error { return os.Chtimes(o.path, time.Time{}, time.Now().Add(time.Hour)) },
		"past":     func() error { return os.Chtimes(o.path, time.Time{}, time.Now().Add(-time.Hour)) },
		"link":     func() error { return errors.Join(os.Rename(o.path, elsewhere), os.Symlink("there", o.path)) },
		"dangling": func() error { return errors.Join(os.Remove(o.path), os.Symlink("nowhere", o.path)) },
		"device":   func() error { return errors.Join(os.Remove(o.path), os.Symlink(os.DevNull, o.path)) },
		"removed":  func() error { return os.Remove(o.path) },
	} {
		o.set([]byte("ready"))
		if err := errors.Join(o.write(), o.touch(time.Now())); err != nil || o.look() != intact {
			t.Fatalf("%s: the file is not as it was written: %v", name, err)
		}
		if err := harm(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := altered
		switch name {
		case "nothing", "mode":
			want = intact
		case "removed":
			want = missing
		}
		if got := o.look(); got != want {
			t.Errorf("%s: look() = %d, want %d", name, got, want)
		}
	}
	if data, err := os.ReadFile(elsewhere); err != nil || string(data) != "ready" {
		t.Errorf("the file behind the link: %q, %v", data, err)
	}
	if err := o.unlock(); err != nil {
		t.Error(err)
	}
}

// The first touch comes after the write, and so may an edit.
func TestLookAfterAnEditBeforeTheTouch(t *testing.T) {
	o := &output{path: filepath.Join(t.TempDir(), "state")}
	o.set([]byte("ready"))
	err := errors.Join(o.write(), os.WriteFile(o.path, []byte("drain"), 0o644), o.touch(time.Now()))
	if got := o.look(); err != nil || got != altered {
		t.Errorf("look() = %d, %v, want %d", got, err, altered)
	}
	if got := (&output{path: filepath.Join(o.path, "state")}).look(); got != altered {
		t.Errorf("below a file: look() = %d, want %d", got, altered)
	}
	if err := o.unlock(); err != nil {
		t.Error(err)
	}
}

// A file that nobody touched is not read each second: what it should hold makes no
// difference then.
func TestLookReadsOnce(t *testing.T) {
	ready, other := []byte("ready"), []byte("other")
	now := time.Now().Truncate(2 * time.Second) // a file system may round to that
	o := &output{path: filepath.Join(t.TempDir(), "state")}
	for name, touch := range map[string]func() error{
		"written":          func() error { return errors.Join(o.write(), o.touch(now)) },
		"mode":             func() error { return os.Chmod(o.path, 0o600) },
		"touched":          func() error { return o.touch(now) },
		"touched, at rest": func() error { return o.touch(o.at) },
	} {
		o.set(ready)
		if err := errors.Join(o.write(), o.touch(now)); err != nil || o.look() != intact {
			t.Fatalf("%s: the file is not as it was written: %v", name, err)
		}
		if err := touch(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		read := name == "written" || name == "mode"
		o.data = other
		if got := o.look(); (got == altered) != read {
			t.Errorf("%s: the first look() = %d, want one that reads: %t", name, got, read)
		}
		o.data = ready
		first := o.look()
		o.data = other
		if second := o.look(); first != intact || second != intact {
			t.Errorf("%s: look() = %d, then %d, want %d without reading", name, first, second, intact)
		}
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

// What somebody else does while render sets the file's time is seen: also an edit,
// which gives it a time as good as render's.
func TestLookAfterARace(t *testing.T) {
	dir := t.TempDir()
	o := &output{path: filepath.Join(dir, "state")}
	other := filepath.Join(dir, "other")
	for name, harm := range map[string]func() error{
		"nothing": func() error { return nil },
		"time":    func() error { return os.Chtimes(o.path, time.Time{}, time.Unix(1, 0)) },
		"edit":    func() error { return os.WriteFile(o.path, []byte("drain"), 0o644) },
		"replaced": func() error {
			return errors.Join(os.WriteFile(other, []byte("drain"), 0o644), os.Rename(other, o.path))
		},
		"link": func() error { return errors.Join(os.Rename(o.path, other), os.Symlink(other, o.path)) },
	} {
		o.set([]byte("ready"))
		if err := errors.Join(o.write(), o.touch(time.Now())); err != nil || o.look() != intact {
			t.Fatalf("%s: the file is not as it was written: %v", name, err)
		}
		at := time.Now()
		before, err := o.stamp(at)
		if err := errors.Join(err, harm(), o.settle(before, at)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := altered
		if name == "nothing" {
			want = intact
		}
		if got := o.look(); got != want {
			t.Errorf("%s: look() = %d, want %d", name, got, want)
		}
	}
	if err := o.unlock(); err != nil {
		t.Error(err)
	}
}
