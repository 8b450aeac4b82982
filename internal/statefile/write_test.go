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

// A directory may be a link. A file that became one is replaced: what it leads
// to is somebody else's, or not there at all.
func TestWriteAndLinks(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	must(t, os.Mkdir(real, 0o755))
	must(t, os.Symlink("real", filepath.Join(dir, "linked-dir")))
	must(t, statefile.Write(filepath.Join(dir, "linked-dir", "state"), []byte("1")))
	for name, target := range map[string]string{"link": "real/state", "dangling": "nowhere/state", "loop": "loop"} {
		path := filepath.Join(dir, name)
		must(t, os.Symlink(target, path))
		must(t, statefile.Write(path, []byte("2")))
		if info, err := os.Lstat(path); err != nil || info.Mode() != 0o644 || read(t, path) != "2" {
			t.Errorf("%s is now %v, %v", name, info, err)
		}
	}
	if got := read(t, filepath.Join(real, "state")); got != "1" {
		t.Errorf("behind the link: %q, want 1", got)
	}
}

func TestWriteFailsWithoutATrace(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	for name, reason := range map[string]string{
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
	if len(entries) != 1 {
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

// Somebody who may write to the directory cannot choose where else a file is made.
func TestLockFollowsNoLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	must(t, os.Symlink(elsewhere, statefile.LockPath(path)))
	if _, err := statefile.Lock(path); err == nil || !strings.Contains(err.Error(), statefile.LockPath(path)) {
		t.Errorf("Lock = %v, want an error that names the link", err)
	}
	if _, err := os.Lstat(elsewhere); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file where the link leads to: %v", err)
	}
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
