package statefile_test

import (
	"context"
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

// follow reports each change that a watch leads to, until the test ends.
func follow(t *testing.T, path string) func(want desired.State) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	notices := statefile.Watch(ctx, path)
	t.Cleanup(func() {
		cancel()
		for range notices {
		}
	})
	r := statefile.NewReader(path)
	return func(want desired.State) {
		t.Helper()
		deadline := time.After(5 * time.Second)
		for {
			if f, _, _ := r.Look(); f != nil && f.State(0) == want {
				return
			}
			select {
			case <-notices:
			case <-deadline:
				t.Fatalf("state %v was not seen", want)
			}
		}
	}
}

func TestWatchSeesReplacements(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	see := follow(t, path)
	for _, state := range []desired.State{desired.Drain, desired.Maint, desired.Ready} {
		write(t, path, state)
		see(state)
	}
	must(t, os.Remove(path))
	write(t, path, desired.Hold)
	see(desired.Hold)
}

func TestWatchOutlivesItsDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	path := filepath.Join(dir, "state")
	see := follow(t, path) // the directory does not exist yet
	for _, state := range []desired.State{desired.Drain, desired.Maint, desired.Ready} {
		must(t, os.Mkdir(dir, 0o755))
		write(t, path, state)
		see(state)
		must(t, os.RemoveAll(dir))
	}
}

// Whoever changes the file without an end gets no answer to each change.
func TestWatchRests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	notices := statefile.Watch(t.Context(), path)
	<-notices
	start := time.Now()
	for range 5 {
		must(t, os.WriteFile(path, nil, 0o644))
		<-notices
	}
	if took := time.Since(start); took < 300*time.Millisecond { // one may be that of each second
		t.Errorf("5 notices within %s", took)
	}
}

// The notice of each second puts off none of a change.
func TestWatchLooksInPassing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	notices := statefile.Watch(t.Context(), path)
	<-notices
	best := time.Hour
	for range 3 { // a busy machine is late now and then, a rest always
		<-notices // nobody changes anything: a second is over
		start := time.Now()
		must(t, os.Mkdir(path, 0o755)) // one event
		<-notices
		best = min(best, time.Since(start))
		must(t, os.Remove(path))
		<-notices
	}
	if best >= 50*time.Millisecond {
		t.Errorf("the fastest notice of a change took %s", best)
	}
}

// Kubernetes replaces a volume's content by renaming the link ..data.
func TestWatchSeesLinkFlips(t *testing.T) {
	dir := t.TempDir()
	flip := func(version string, state desired.State) {
		must(t, os.Mkdir(filepath.Join(dir, version), 0o755))
		write(t, filepath.Join(dir, version, "state"), state)
		must(t, os.Symlink(version, filepath.Join(dir, "..tmp")))
		must(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	}
	flip("v1", desired.Drain)
	must(t, os.Symlink("..data/state", filepath.Join(dir, "state")))
	see := follow(t, filepath.Join(dir, "state"))
	see(desired.Drain)
	flip("v2", desired.Maint)
	see(desired.Maint)
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
