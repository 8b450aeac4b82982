package dev

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A directory whose process is dead is removed, and no other: not that of one
// that lives or has just begun, of another user, or of other programs.
func TestSweep(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	quiet := slog.New(slog.DiscardHandler)
	live, err := newDirectory()
	if err != nil {
		t.Fatal(err)
	}
	dead, err := newDirectory()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead.path, "state"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	begun, other := filepath.Join(temp, dirPrefix+"begun"), filepath.Join(temp, "other-dir")
	for _, dir := range []string{begun, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(other, dirLock), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(temp, dirPrefix+"link")
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	sweep(quiet)
	for _, dir := range []string{live.path, dead.path, begun, other, link} {
		if _, err := os.Lstat(dir); err != nil {
			t.Errorf("while its process lives: %v", err)
		}
	}
	if err := dead.lock.Close(); err != nil { // as the end of the process does
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dead.path, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		sweep(quiet)
		if _, err := os.Lstat(dead.path); err != nil {
			t.Errorf("another user's: %v", err)
		}
		if err := os.Chown(dead.path, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	sweep(quiet)
	if _, err := os.Lstat(dead.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the death of its process it is still there: %v", err)
	}
	if err := live.remove(); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "hadrain-dev-begun hadrain-dev-link other-dir" {
		t.Errorf("left: %s", got)
	}
}
