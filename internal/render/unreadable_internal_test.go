package render

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

// unreadable makes the test binary keep the state file in the directory that it
// names, as somebody who may not read it: to root no mode is in the way.
const unreadable = "HADRAIN_TEST_UNREADABLE"

// A mode that keeps render from reading its own file is kept, and is no change
// that is put back again and again.
func TestLookAtAnUnreadableFile(t *testing.T) {
	if dir := os.Getenv(unreadable); dir != "" {
		o := &output{path: filepath.Join(dir, "state"), data: []byte("ready")}
		if err := errors.Join(o.write(), os.Chmod(o.path, 0), o.write(), o.touch(time.Now())); err != nil || o.look() != intact {
			t.Errorf("look() = %d, %v, want %d", o.look(), err, intact)
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Setenv(unreadable, t.TempDir())
		TestLookAtAnUnreadableFile(t)
		return
	}
	dir := testpeer.Dir(t)
	binary, err := os.ReadFile(os.Args[0])
	if err := errors.Join(err, os.Chmod(dir, 0o777), os.WriteFile(filepath.Join(dir, "test"), binary, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "test"), "-test.run=^TestLookAtAnUnreadableFile$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), unreadable+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as somebody else: %v\n%s", err, out)
	}
}
