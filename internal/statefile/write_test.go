package statefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

func TestWriteModes(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077} {
		for old, want := range map[fs.FileMode]fs.FileMode{0: 0o644, 0o600: 0o600, 0o664: 0o664} {
			path := filepath.Join(t.TempDir(), "state")
			before := syscall.Umask(umask)
			if old != 0 {
				must(t, os.WriteFile(path, nil, old))
				must(t, os.Chmod(path, old))
			}
			err := statefile.Write(path, []byte("x"))
			syscall.Umask(before)
			must(t, err)
			info, err := os.Stat(path)
			must(t, err)
			if info.Mode() != want {
				t.Errorf("umask %03o, old mode %v: new mode %v, want %v", umask, old, info.Mode(), want)
			}
		}
	}
}

func TestWriteKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		testpeer.Missing(t, "root, to have files of another owner")
	}
	path := filepath.Join(t.TempDir(), "state")
	must(t, os.WriteFile(path, nil, 0o644))
	must(t, os.Chown(path, 12345, 23456))
	must(t, statefile.Write(path, []byte("x")))
	info, err := os.Stat(path)
	must(t, err)
	if sys, ok := info.Sys().(*syscall.Stat_t); !ok || sys.Uid != 12345 || sys.Gid != 23456 {
		t.Errorf("owner after Write: %+v, want 12345:23456", info.Sys())
	}
}

func TestWriteThroughLinks(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	must(t, os.Mkdir(real, 0o755))
	must(t, os.Symlink("real", filepath.Join(dir, "linked-dir")))
	must(t, os.Symlink("real/state", filepath.Join(dir, "linked-file")))
	must(t, statefile.Write(filepath.Join(dir, "linked-dir", "state"), []byte("1")))
	must(t, statefile.Write(filepath.Join(dir, "linked-file"), []byte("2")))
	if got := read(t, filepath.Join(real, "state")); got != "2" {
		t.Errorf("content %q, want 2", got)
	}
	if info, err := os.Lstat(filepath.Join(dir, "linked-file")); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link is now %v, %v", info.Mode(), err)
	}
}

func TestWriteFailsWithoutATrace(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("nowhere/state", filepath.Join(dir, "dangling")))
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	for name, reason := range map[string]string{
		"dangling":      "following the link",
		"folder":        "not a regular file",
		"missing/state": "no such file or directory",
	} {
		err := statefile.Write(filepath.Join(dir, name), []byte("x"))
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("Write to %s = %v, want an error with %q", name, err, reason)
		}
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
}

// Each attempt has a temporary file of its own, of which nobody wants to hear.
func TestTheSameTroubleHasTheSameText(t *testing.T) {
	dir := t.TempDir()
	paths := map[string]string{filepath.Join(dir, "missing/state"): "no such file or directory"}
	if os.Geteuid() == 0 {
		must(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"))
		t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
		paths[filepath.Join(dir, "state")] = "no space left on device"
	}
	for path, reason := range paths {
		first, second := statefile.Write(path, make([]byte, 1<<20)), statefile.Write(path, make([]byte, 1<<20))
		if first == nil || second == nil || first.Error() != second.Error() {
			t.Errorf("Write to %s: first %v, then %v", path, first, second)
			continue
		}
		if text := first.Error(); !strings.Contains(text, reason) || !strings.Contains(text, path) || strings.Contains(text, "tmp-") {
			t.Errorf("Write to %s: %v", path, first)
		}
	}
}

func TestSweep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*")
	must(t, os.Mkdir(dir, 0o755))
	path := filepath.Join(dir, "state")
	for _, name := range []string{".state.tmp-1", ".state.tmp-22", "state", ".other.tmp-1", ".state.lock"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	must(t, statefile.Sweep(path))
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != 3 {
		t.Errorf("after Sweep: %v, want .other.tmp-1, .state.lock and state", entries)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	release, err := statefile.Lock(path)
	must(t, err)
	if _, err := statefile.Lock(path); !errors.Is(err, statefile.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Errorf("second Lock = %v, want ErrLocked that names %s", err, path)
	}
	must(t, release())
	release, err = statefile.Lock(path)
	must(t, err)
	must(t, release())
}

func TestTouch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	if err := statefile.Touch(path, at); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Touch of nothing = %v", err)
	}
	must(t, statefile.Write(path, []byte("x")))
	must(t, statefile.Touch(path, at))
	info, err := os.Stat(path)
	must(t, err)
	if !info.ModTime().Equal(at) {
		t.Errorf("modification time %v, want %v", info.ModTime(), at)
	}
}
