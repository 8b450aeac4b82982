package statefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
)

// write puts a state with one key there and returns its bytes.
func write(t *testing.T, path string, state desired.State) []byte {
	t.Helper()
	f := sample()
	f.Rows = []desired.Row{{Key: "canary", State: state}}
	data := statefiletest.Format(f)
	must(t, statefile.Write(path, data))
	return data
}

func TestReaderFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	r := statefile.NewReader(path)
	if f, _, err := r.Look(); f != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Look at nothing = %v, %v", f, err)
	}
	write(t, path, desired.Drain)
	f, _, err := r.Look()
	if err != nil || f == nil || f.State(0) != desired.Drain {
		t.Fatalf("first Look = %+v, %v", f, err)
	}
	at := time.Now().Add(time.Minute).Truncate(time.Second)
	must(t, statefile.Touch(path, at))
	f, mtime, err := r.Look()
	if err != nil || f != nil || !mtime.Equal(at) {
		t.Errorf("Look after a touch = %v, %v, %v, want no file, %v", f, mtime, err, at)
	}
	write(t, path, desired.Maint)
	if f, _, err = r.Look(); err != nil || f == nil || f.State(0) != desired.Maint {
		t.Errorf("Look after a write = %+v, %v", f, err)
	}
}

func TestReaderRefusesAndHeals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	data := write(t, path, desired.Drain)
	r := statefile.NewReader(path)
	if _, _, err := r.Look(); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	must(t, os.WriteFile(path, data[:len(data)-3], 0o644))
	must(t, statefile.Touch(path, old))
	for range 2 {
		if f, _, err := r.Look(); err == nil || f != nil {
			t.Fatalf("Look at a cut file = %v, %v, want an error each time", f, err)
		}
	}
	must(t, os.WriteFile(path, data, 0o644))
	must(t, statefile.Touch(path, old))
	if f, _, err := r.Look(); err != nil || f == nil {
		t.Errorf("Look at the mended file = %v, %v", f, err)
	}
}

func TestReaderWantsARegularFile(t *testing.T) {
	if f, _, err := statefile.Load(t.TempDir()); err == nil || f != nil {
		t.Errorf("Load of a directory = %v, %v", f, err)
	}
}

// Nothing that stands in the place of the file may hold up whoever looks, take
// much memory, or be in the way of the file once that is back.
func TestReaderOfSomethingElse(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"directory":  func(path string) error { return os.Mkdir(path, 0o755) },
		"named pipe": func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"device":     func(path string) error { return os.Symlink("/dev/zero", path) },
		"loop":       func(path string) error { return os.Symlink(path, path) },
		"far too long": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, statefile.MaxSize+1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state")
			must(t, make(path))
			r := statefile.NewReader(path)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 2 {
				if f, _, err := r.Look(); err == nil || f != nil {
					t.Errorf("Look = %v, %v, want an error", f, err)
				}
			}
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
				t.Errorf("%d bytes allocated", allocated)
			}
			must(t, os.Remove(path))
			write(t, path, desired.Drain)
			if f, _, err := r.Look(); err != nil || f == nil {
				t.Errorf("Look at the file that is back = %v, %v", f, err)
			}
		})
	}
}
