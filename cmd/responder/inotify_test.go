package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/testpeer"
)

// Where inotify has no more to give, a change of the file is noticed all the
// same, within two seconds: here by a user to whom it gives nothing. It is the
// poll that also serves file systems without inotify.
func TestWithoutInotify(t *testing.T) {
	unshare := testpeer.Need(t, "unshare")
	if out, err := exec.Command(unshare, "--user", "--map-root-user", "true").CombinedOutput(); err != nil {
		testpeer.Missing(t, "user name spaces: "+string(out))
	}
	agent := filepath.Join(testpeer.Dir(t), "agent")
	path := stateFile(t, desired.Drain)
	cmd := exec.Command(unshare, "--user", "--map-root-user", "sh", "-c",
		`echo 0 >/proc/sys/user/max_inotify_instances && exec "$0" "$@"`,
		os.Args[0], "--state", path, "--listen", agent, "--http.listen", "")
	cmd.Env = append(os.Environ(), mainVariable+"=1", "GORACE=atexit_sleep_ms=0")
	testpeer.Start(t, cmd).WaitOutput(t, "answering agent checks")
	if got := ask(t, agent, "canary"); got != "drain 100%" {
		t.Fatalf("got %q, want drain 100%%", got)
	}
	took := make([]time.Duration, 3)
	for i, state := range []desired.State{desired.Maint, desired.Drain, desired.Maint} {
		writeState(t, path, state)
		start := time.Now()
		waitAnswer(t, agent, "canary", state)
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	if took[1] > 2*time.Second { // a machine that stalls may be late once
		t.Errorf("noticed after %v, want within 2 s", took)
	}
}

// While the program stands still more happens in the directory than the kernel
// keeps for it: what it was not told of is noticed, and what comes after that.
func TestInotifyOverflow(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		testpeer.Missing(t, err.Error())
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || limit > 100_000 {
		testpeer.Missing(t, fmt.Sprintf("a queue of inotify that can be filled: it takes %s", text))
	}
	agent := filepath.Join(testpeer.Dir(t), "agent")
	path := stateFile(t, desired.Drain)
	p := testpeer.Start(t, program("", nil, "--state", path, "--listen", agent, "--http.listen", ""))
	p.WaitOutput(t, "answering agent checks")
	waitAnswer(t, agent, "canary", desired.Drain)
	overflowed := witness(t, filepath.Dir(path))
	p.Pause(t)
	for i := range limit + 1 { // of one name in a row the kernel would keep one
		name := filepath.Join(filepath.Dir(path), []string{"a", "b"}[i%2])
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	writeState(t, path, desired.Maint)
	if !overflowed() {
		t.Fatal("the queue did not overflow")
	}
	p.Resume()
	waitAnswer(t, agent, "canary", desired.Maint)
	// For a second: what had queued up is read long before its end.
	for start := time.Now(); time.Since(start) < time.Second; {
		for _, state := range []desired.State{desired.Drain, desired.Maint} {
			writeState(t, path, state)
			waitAnswer(t, agent, "canary", state)
		}
	}
}

func waitAnswer(t *testing.T, agent, question string, want desired.State) {
	t.Helper()
	testpeer.WaitFor(t, "the new state to be answered", func() (bool, string) {
		got := ask(t, agent, question)
		return got+"\n" == want.Reply(0), got
	})
}

// witness watches dir as the program does, and does not read either until it is
// asked whether the queue overflowed.
func witness(t *testing.T, dir string) (overflowed func() bool) {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		testpeer.Missing(t, "inotify: "+err.Error())
	}
	t.Cleanup(func() { _ = syscall.Close(fd) }) // nothing was written
	if _, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_CREATE|syscall.IN_MODIFY|syscall.IN_ATTRIB|syscall.IN_MOVED_TO); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		b := make([]byte, 64<<10)
		for {
			n, err := syscall.Read(fd, b)
			if err != nil || n <= 0 {
				return false
			}
			for at := 0; at < n; {
				event := b[at:]
				if binary.NativeEndian.Uint32(event[4:])&syscall.IN_Q_OVERFLOW != 0 {
					return true
				}
				at += syscall.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(event[12:]))
			}
		}
	}
}
