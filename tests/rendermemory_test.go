package tests_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

// Code that only the start needed is not resident once the file is there.
func TestRenderForgetsItsStart(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.put(".hadrain", "v1 id="+sentinelID)
	s.put("web/a", "drain")
	cmd := s.renderCommand()
	cmd.Path = testpeer.BuildPlain(t, "hadrain-render") // the race detector's own memory would hide it
	p := testpeer.Start(t, cmd)
	s.wantRows(p, "web/a drain")
	testpeer.WaitFor(t, "at most three quarters of the most memory", func() (bool, string) {
		now, most := memory(t, p.Pid(), "VmRSS"), memory(t, p.Pid(), "VmHWM")
		return now <= most*3/4, fmt.Sprintf("now %d KiB, most %d KiB\n%s", now, most, p.Output())
	})
	s.put("web/a", "maint")
	s.wantRows(p, "web/a maint")
}

// memory returns an amount of /proc/PID/status, in KiB.
func memory(t *testing.T, pid int, name string) (kib int) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "\n"+name+":")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("%s of process %d: %v", name, pid, err)
	}
	return kib
}
