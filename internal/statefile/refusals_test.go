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

// A directory that refuses one of the steps keeps the file as it is, with nothing
// beside it: also if what it refuses is only the last step, that it is synced.
func TestWriteIntoADirectoryThatRefuses(t *testing.T) {
	needRoot(t)
	for name, dir := range map[string]struct {
		mode  os.FileMode
		owner int
		want  string
	}{
		"not read":     {0o300, 12345, "permission denied"},
		"not written":  {0o555, 12345, "permission denied"},
		"not searched": {0o666, 12345, "permission denied"},
		"not his file": {os.ModeSticky | 0o777, 0, "operation not permitted"},
	} {
		path := othersFile(t, 0, 0)
		in := filepath.Dir(path)
		must(t, os.Chown(in, dir.owner, dir.owner))
		must(t, os.Chmod(in, dir.mode))
		var first string
		for range 2 {
			out, err := tryAs(t, path, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}})
			if err == nil || !strings.Contains(out, dir.want) || !strings.Contains(out, in) || first != "" && out != first {
				t.Errorf("%s: Write = %q, want an error with %q, the same each time", name, out, dir.want)
			}
			first = out
		}
		if got := names(t, in); len(got) != 1 || read(t, path) != "" {
			t.Errorf("%s: there is now %q, and the file says %q", name, got, read(t, path))
		}
	}
}

// A file that may not be changed is neither replaced nor in the way of its copy.
func TestWriteOfAFileThatMayNotChange(t *testing.T) {
	needRoot(t)
	for _, attribute := range []string{"i", "a"} {
		dir := testpeer.Dir(t)
		path := filepath.Join(dir, "state")
		must(t, os.WriteFile(path, []byte("old"), 0o600))
		if out, err := exec.Command("chattr", "+"+attribute, path).CombinedOutput(); err != nil {
			testpeer.Missing(t, "a file system with attributes: "+string(out))
		}
		t.Cleanup(func() { _ = exec.Command("chattr", "-"+attribute, path).Run() }) // again, if the test failed
		if err := statefile.Write(path, []byte("new")); err == nil || !strings.Contains(err.Error(), path+": rename: operation not permitted") {
			t.Errorf("chattr +%s: Write = %v", attribute, err)
		}
		must(t, statefile.Copy(path+"2", path))
		wantMode(t, path+"2", 0o600)
		if got := names(t, dir); len(got) != 2 || read(t, path) != "old" || read(t, path+"2") != "old" {
			t.Errorf("chattr +%s: there is now %q", attribute, got)
		}
		must(t, exec.Command("chattr", "-"+attribute, path).Run())
		must(t, statefile.Write(path, []byte("new")))
	}
}

// The name that a copy would be linked at may be taken.
func TestCopyBesideWhatIsNotOurs(t *testing.T) {
	dir := t.TempDir()
	from, path := filepath.Join(dir, "from"), filepath.Join(dir, "path")
	must(t, os.WriteFile(from, []byte("x"), 0o600))
	must(t, os.MkdirAll(filepath.Join(dir, ".path.tmp-0", "full"), 0o755))
	must(t, statefile.Copy(path, from))
	wantMode(t, path, 0o600)
	if got := read(t, path); got != "x" {
		t.Errorf("the copy says %q", got)
	}
}
