package testpeer

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Exec runs a program inside and returns what it printed, both streams. The
// test fails if the program does.
func (m *Machine) Exec(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := m.Try(name, args...)
	if err != nil {
		t.Fatalf("in the machine: %s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// Try is [Machine.Exec] without its verdict.
func (m *Machine) Try(name string, args ...string) (string, error) {
	inside := []string{
		"-t", strconv.Itoa(m.leader), "-a", "env", "-i", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", name,
	}
	cmd := exec.Command("nsenter", append(inside, args...)...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

// Leader returns the process id of its systemd, as this process sees it. Valid
// until the machine is switched off.
func (m *Machine) Leader() int { return m.leader }

// Running returns where a file of the booted machine is for this process, as it
// sees it itself: /run and /proc included. Valid until it is switched off.
func (m *Machine) Running(path string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", m.leader), path)
}
