package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/testpeer"
)

// Where inotify has no more to give, a change of the file is noticed all the
// same, within two seconds: here by a user to whom it gives nothing.
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
	writeState(t, path, desired.Maint)
	start := time.Now()
	testpeer.WaitFor(t, "the new state to be answered", func() (bool, string) {
		got := ask(t, agent, "canary")
		return got == "maint 100%", got
	})
	if took := time.Since(start); took > 10*time.Second { // orders of magnitude: it is 1 s
		t.Errorf("noticed after %v", took)
	}
}
