package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
	"hadrain/internal/testpeer"
)

// A restart under somebody who holds the socket loses no check: they queue.
func TestRestartLosesNothing(t *testing.T) {
	agent, addr := listener(t)
	path := stateFile(t, desired.Drain)
	start := func() *testpeer.Process {
		return testpeer.Start(t, program("agent", []*os.File{agent}, "--state", path))
	}
	p := start()
	done, asked := make(chan struct{}), make(chan int, 1)
	go func() {
		n := 0
		for {
			select {
			case <-done:
				asked <- n
				return
			default:
			}
			if got := ask(t, addr, "canary"); got != "drain 100%" {
				t.Errorf("got %q, want drain 100%%", got)
			}
			n++
		}
	}()
	for range 5 {
		p.WaitOutput(t, "answering agent checks")
		if code := p.Stop(t); code != 0 {
			t.Errorf("exit status %d, want 0", code)
		}
		p = start()
	}
	p.WaitOutput(t, "answering agent checks")
	close(done)
	if n := <-asked; n == 0 {
		t.Error("nothing was asked")
	}
}

// systemd hears what it needs to hear, also while there is no state file.
func TestNotifies(t *testing.T) {
	dir := testpeer.Dir(t)
	address := &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"}
	notify, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	if err := notify.SetReadDeadline(time.Now().Add(testpeer.Timeout(t))); err != nil {
		t.Fatal(err)
	}
	hear := func(want string) {
		t.Helper()
		var b [256]byte
		for {
			n, err := notify.Read(b[:])
			if err != nil {
				t.Fatalf("waiting for %s: %v", want, err)
			}
			if got := string(b[:n]); strings.HasPrefix(got, want) {
				return
			}
		}
	}
	path := filepath.Join(dir, "state")
	cmd := program("", nil, "--state", path, "--listen", filepath.Join(dir, "agent"), "--http.listen", "")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+address.Name, "WATCHDOG_USEC=200000")
	p := testpeer.Start(t, cmd)
	hear("READY=1")
	hear("WATCHDOG=1")
	if got := ask(t, filepath.Join(dir, "agent"), "canary"); got != "unsynced" {
		t.Errorf("got %q, want unsynced", got)
	}
	writeState(t, path, desired.Drain)
	p.Signal(syscall.SIGHUP)
	hear("RELOADING=1\nMONOTONIC_USEC=")
	hear("READY=1")
	if got := ask(t, filepath.Join(dir, "agent"), "canary"); got != "drain 100%" {
		t.Errorf("after SIGHUP: %q, want drain 100%%", got)
	}
	p.Signal(syscall.SIGTERM)
	hear("STOPPING=1")
	if code := p.WaitExit(t); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
}

// A socket that a killed process left behind is no obstacle; anything else is.
func TestStaleUnixSocket(t *testing.T) {
	dir := testpeer.Dir(t)
	path := filepath.Join(dir, "agent")
	run := func() *testpeer.Process {
		return testpeer.Start(t, program("", nil, "--state", stateFile(t, desired.Drain), "--listen", path, "--http.listen", ""))
	}
	first := run()
	first.WaitOutput(t, "answering agent checks")
	second := run()
	if code := second.WaitExit(t); code != 1 || !strings.Contains(second.Output(), "another process does") {
		t.Errorf("beside another one: exit status %d, %q", code, second.Output())
	}
	first.Kill(t)
	run().WaitOutput(t, "answering agent checks")
	if got := ask(t, path, "canary"); got != "drain 100%" {
		t.Errorf("got %q, want drain 100%%", got)
	}
}

func TestMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	f := &statefile.File{Head: statefile.Head{Root: "hadrain", ID: "6f1c", Index: 7, Host: "lb-1", Rendered: time.Now().UTC()}}
	for i := range 1000 {
		f.Rows = append(f.Rows, desired.Row{Key: fmt.Sprintf("web/server-%04d", i), State: desired.Drain})
	}
	if err := statefile.Write(path, statefiletest.Format(f)); err != nil {
		t.Fatal(err)
	}
	agent, addr := listener(t)
	web, _ := listener(t)
	p := testpeer.Start(t, program("agent:http", []*os.File{agent, web}, "--state", path))
	for i := range 1000 {
		ask(t, addr, fmt.Sprintf("web/server-%04d canary", i))
	}
	anon := rssAnon(t, p.Pid())
	t.Logf("RssAnon %d kB", anon)
	if anon > 12<<10 && !raceEnabled {
		t.Errorf("RssAnon %d kB with 1,000 keys and rows, want at most 12 MB", anon)
	}
}

// rssAnon returns the memory of a process that is not of files, in kB.
func rssAnon(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kb int
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kb); n == 1 {
			return kb
		}
	}
	t.Fatal("no RssAnon in /proc")
	return 0
}
