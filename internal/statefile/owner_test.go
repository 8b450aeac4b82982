package statefile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

// writer makes the test binary write the file that it names, as somebody else.
const writer = "HADRAIN_TEST_WRITE"

func init() {
	if path := os.Getenv(writer); path != "" {
		if err := statefile.Write(path, []byte("new")); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		testpeer.Missing(t, "root, to have files of another owner")
	}
}

func TestWriteKeepsTheOwner(t *testing.T) {
	needRoot(t)
	path := filepath.Join(t.TempDir(), "state")
	must(t, os.WriteFile(path, nil, 0o644))
	must(t, os.Chown(path, 12345, 23456))
	must(t, statefile.Write(path, []byte("x")))
	wantOwner(t, path, 12345, 23456)
}

func wantOwner(t *testing.T, path string, uid, gid uint32) {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	if sys, ok := info.Sys().(*syscall.Stat_t); !ok || sys.Uid != uid || sys.Gid != gid {
		t.Errorf("owner of %s: %+v, want %d:%d", path, info.Sys(), uid, gid)
	}
}

// Whoever may not keep the owner keeps the group, which readers are in.
func TestWriteOfSomebodyElse(t *testing.T) {
	needRoot(t)
	path := othersFile(t, 0, 23456)
	writeAs(t, path, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345, Groups: []uint32{23456}}})
	wantOwner(t, path, 12345, 23456)
}

// In a user namespace, as of PrivateUsers=, an owner may have no number: that is
// no reason to write no more.
func TestWriteInAUserNamespace(t *testing.T) {
	needRoot(t)
	path := othersFile(t, 0, 23456)
	ids := []syscall.SysProcIDMap{{ContainerID: 12345, HostID: 12345, Size: 1}}
	writeAs(t, path, &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids,
		Credential: &syscall.Credential{Uid: 12345, Gid: 12345},
	})
	wantOwner(t, path, 12345, 12345)
}

// othersFile makes a file in a directory that everybody may write to.
func othersFile(t *testing.T, uid, gid int) (path string) {
	t.Helper()
	dir := testpeer.Dir(t)
	must(t, os.Chmod(dir, 0o777))
	path = filepath.Join(dir, "state")
	must(t, os.WriteFile(path, nil, 0o640))
	must(t, os.Chown(path, uid, gid))
	return path
}

func writeAs(t *testing.T, path string, who *syscall.SysProcAttr) {
	t.Helper()
	if out, err := tryAs(t, path, who); err != nil {
		t.Fatalf("writing as somebody else: %v: %s", err, out)
	}
	if got := read(t, path); got != "new" {
		t.Errorf("content %q, want new", got)
	}
}

// tryAs is writeAs for what need not succeed. It returns the error of Write.
func tryAs(t *testing.T, path string, who *syscall.SysProcAttr) (string, error) {
	t.Helper()
	// The binary of the test is where only its owner may go.
	dir := testpeer.Dir(t)
	must(t, os.Chmod(dir, 0o755))
	binary := filepath.Join(dir, "writer")
	data, err := os.ReadFile(os.Args[0])
	must(t, err)
	must(t, os.WriteFile(binary, data, 0o755))
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), writer+"="+path)
	cmd.SysProcAttr = who
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A copy is as the file is, in mode and owner, and takes no space.
func TestCopy(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
	from, path := filepath.Join(dir, "from"), filepath.Join(dir, "path")
	must(t, os.WriteFile(from, []byte(strings.Repeat("x", 40<<10)), 0o600))
	must(t, os.Chown(from, 12345, 23456))
	must(t, os.WriteFile(path, []byte("old"), 0o644))
	for range 2 { // the second time they are one file
		must(t, statefile.Copy(path, from))
		wantOwner(t, path, 12345, 23456)
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || info.Size() != 40<<10 {
			t.Errorf("the copy: %v, %v", info, err)
		}
	}
	must(t, statefile.Write(path, []byte("new")))
	if got := read(t, from); len(got) != 40<<10 {
		t.Errorf("the original has now %d bytes", len(got))
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
}

// Where files can be made and not removed, as with chattr +a, they do not become
// ever more.
func TestWriteLeavesNoHeap(t *testing.T) {
	needRoot(t)
	dir := testpeer.Dir(t)
	path := filepath.Join(dir, "state")
	must(t, statefile.Write(path, []byte("old")))
	if out, err := exec.Command("chattr", "+a", dir).CombinedOutput(); err != nil {
		testpeer.Missing(t, "a file system with attributes: "+string(out))
	}
	t.Cleanup(func() { _ = exec.Command("chattr", "-a", dir).Run() }) // again, if the test failed
	for range 3 {
		if err := statefile.Write(path, []byte("new")); err == nil {
			t.Error("the file was replaced")
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".state.tmp-*"))
	must(t, err)
	if len(left) > 1 || read(t, path) != "old" {
		t.Errorf("left behind: %q; the file says %q", left, read(t, path))
	}
	must(t, exec.Command("chattr", "-a", dir).Run())
	must(t, statefile.Write(path, []byte("new")))
	if left, err = filepath.Glob(filepath.Join(dir, ".state.tmp-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// What somebody else put beside the file, under a name as of a temporary file, and
// that cannot be removed stops no write.
func TestWriteBesideWhatIsNotOurs(t *testing.T) {
	needRoot(t)
	path := othersFile(t, 12345, 12345)
	dir := filepath.Dir(path)
	theirs := filepath.Join(dir, ".state.tmp-1")
	must(t, os.WriteFile(theirs, nil, 0o644))
	must(t, os.MkdirAll(filepath.Join(dir, ".state.tmp-2", "full"), 0o755))
	must(t, os.Chmod(dir, os.ModeSticky|0o777))
	writeAs(t, path, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}})
	if _, err := os.Stat(theirs); err != nil {
		t.Errorf("theirs was removed: %v", err)
	}
	must(t, statefile.Write(path, []byte("x"))) // as root, who may not remove a full directory
}
