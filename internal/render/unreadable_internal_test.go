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
	asSomebodyElse(t, testpeer.Dir(t))
}

// asSomebodyElse runs the test again, in another process, for whom dir is.
func asSomebodyElse(t *testing.T, dir string) {
	t.Helper()
	binary, err := os.ReadFile(os.Args[0])
	if err := errors.Join(err, os.Chmod(dir, 0o777), os.WriteFile(filepath.Join(dir, "test"), binary, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "test"), "-test.run=^"+t.Name()+"$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), unreadable+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as somebody else: %v\n%s", err, out)
	}
}

// Only its owner may set the time of a file. If that is somebody else by now, say
// after a start by root, the file is made anew.
func TestTouchOfSomebodyElses(t *testing.T) {
	if dir := os.Getenv(unreadable); dir != "" {
		o := &output{path: filepath.Join(dir, "state"), data: []byte("ready")}
		if err := o.touch(time.Now()); err == nil || !o.dirty {
			t.Fatalf("touch: %v, dirty: %v, want an error and another file", err, o.dirty)
		}
		if err := errors.Join(o.write(), o.touch(time.Now())); err != nil || o.dirty {
			t.Errorf("writing: %v, dirty: %v", err, o.dirty)
		}
		return
	}
	if os.Geteuid() != 0 {
		testpeer.Missing(t, "root, to have a file of another owner")
	}
	dir := testpeer.Dir(t)
	if err := os.WriteFile(filepath.Join(dir, "state"), []byte("ready"), 0o644); err != nil {
		t.Fatal(err)
	}
	asSomebodyElse(t, dir)
}
