package statefile_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hadrain/internal/statefile"
)

func TestFollow(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(dir, "real", "deep"), 0o755))
	for name, target := range map[string]string{
		"dir": "real/deep", "file": "real/state", "absolute": filepath.Join(dir, "real", "state"),
		"twice": "file", "up": "dir/../state", "nowhere": "gone/state", "round": "round",
	} {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	for path, want := range map[string]struct{ follow, identity string }{
		"real/state": {"real/state", "real/state"},
		"dir/state":  {"dir/state", "real/deep/state"}, // the directory's link is followed at each use
		"file":       {"real/state", "real/state"},
		"absolute":   {"real/state", "real/state"},
		"twice":      {"real/state", "real/state"},
		"up":         {"real/state", "real/state"}, // of real/deep, not of the link's own directory
	} {
		got, err := statefile.Follow(filepath.Join(dir, path))
		if want := filepath.Join(dir, want.follow); err != nil || got != want {
			t.Errorf("Follow(%s) = %s, %v, want %s", path, got, err, want)
		}
		if got, want := statefile.Identity(filepath.Join(dir, path)), filepath.Join(dir, want.identity); got != want {
			t.Errorf("Identity(%s) = %s, want %s", path, got, want)
		}
	}
	for path, want := range map[string]string{"nowhere": "no such file", "round": "too many levels"} {
		if got, err := statefile.Follow(filepath.Join(dir, path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Follow(%s) = %s, %v, want %q", path, got, err, want)
		}
	}
	t.Chdir(dir)
	if got, err := statefile.Follow("file"); err != nil || got != "real/state" {
		t.Errorf("Follow(file) = %s, %v, want real/state", got, err)
	}
	if got, want := statefile.Identity("file"), filepath.Join(dir, "real", "state"); got != want {
		t.Errorf("Identity(file) = %s, want %s", got, want)
	}
}

// A file is not put where something else is, nor where the names of temporary
// files would be too long.
func TestTarget(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	long := strings.Repeat("x", 220)
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	for name, target := range map[string]string{"link": "file", "new": "later", "null": os.DevNull, "round": "round"} {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	for name, want := range map[string]string{"file": "file", "link": "file", "none": "none", "new": "later", long: long} {
		if got, err := statefile.Target(filepath.Join(dir, name)); err != nil || got != filepath.Join(dir, want) {
			t.Errorf("Target(%s) = %s, %v, want %s", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"folder": "folder: not a regular file (d", "pipe": "pipe: not a regular file (p", "null": "/dev/null: not a regular file (D",
		"round": "too many levels", long + "x": "221 bytes: want at most 220",
	} {
		if got, err := statefile.Target(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Target(%s) = %s, %v, want %q", name, got, err, want)
		}
	}
	must(t, statefile.Write(filepath.Join(dir, long), []byte("x")))
	must(t, statefile.Copy(filepath.Join(dir, "."+long+".previous"), filepath.Join(dir, long))) // as render does
}
