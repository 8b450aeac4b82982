package statefile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

// secret makes a file for 12345:23456 and those in its access control list.
func secret(t *testing.T, path string) {
	t.Helper()
	needRoot(t)
	must(t, os.WriteFile(path, []byte("secret"), 0o600))
	must(t, os.Chown(path, 12345, 23456))
	if err := syscall.Setxattr(path, accessACL, acl(), 0); err != nil {
		testpeer.Missing(t, "a file system with access control lists: "+err.Error())
	}
}

// wantSecret fails the test unless there is a file that those may read, no others.
func wantSecret(t *testing.T, path string) {
	t.Helper()
	wantMode(t, path, 0o660)
	wantOwner(t, path, 12345, 23456)
	got := make([]byte, 100)
	if n, err := syscall.Getxattr(path, accessACL, got); err != nil || string(got[:n]) != string(acl()) {
		t.Errorf("the list of %s is %x, %v, want %x", path, got[:max(n, 0)], err, acl())
	}
}

func wantMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	if info, err := os.Lstat(path); err != nil || info.Mode() != want {
		t.Errorf("%s: %v, %v, want mode %v", path, info, err, want)
	}
}

// Of a link the file that it leads to is copied, and no less kept from others.
func TestCopyOfALink(t *testing.T) {
	dir := t.TempDir()
	from, link, path := filepath.Join(dir, "from"), filepath.Join(dir, "link"), filepath.Join(dir, "path")
	secret(t, from)
	must(t, os.Symlink(from, link))
	for range 2 {
		must(t, statefile.Copy(path, link))
		wantSecret(t, path)
		if got := read(t, path); got != "secret" {
			t.Errorf("the copy says %q", got)
		}
		must(t, os.Chmod(path, 0o644)) // which the copy of another time does not keep
	}
	wantSecret(t, from)
	if got := names(t, dir); len(got) != 3 {
		t.Errorf("left behind: %q", got)
	}
}

// Across file systems it is copied as well.
func TestCopyFromElsewhere(t *testing.T) {
	from, dir := filepath.Join(t.TempDir(), "from"), t.TempDir()
	secret(t, from)
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
	path := filepath.Join(dir, "path")
	must(t, statefile.Copy(path, from))
	wantSecret(t, path)
}

// A link that took the place of a secret gives way to a file that is one.
func TestWriteOverALink(t *testing.T) {
	dir := t.TempDir()
	moved, path := filepath.Join(dir, "moved"), filepath.Join(dir, "path")
	secret(t, moved)
	must(t, os.Symlink(moved, path))
	must(t, statefile.Write(path, []byte("new")))
	wantSecret(t, path)
	if got := read(t, moved); got != "secret" {
		t.Errorf("the file that the link led to says %q", got)
	}
}

// What a link leads to can be out of sight: it may be a secret as well.
func TestWriteOverALinkToTheUnknown(t *testing.T) {
	path := othersFile(t, 12345, 12345)
	hidden := filepath.Join(testpeer.Dir(t), "hidden")
	must(t, os.Mkdir(hidden, 0o700))
	must(t, os.Rename(path, filepath.Join(hidden, "state")))
	must(t, os.Symlink(filepath.Join(hidden, "state"), path))
	writeAs(t, path, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}})
	wantMode(t, path, 0o600)
}
