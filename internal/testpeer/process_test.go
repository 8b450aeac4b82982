package testpeer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hadrain/internal/testpeer"
)

func TestProcessExitCode(t *testing.T) {
	p := testpeer.Start(t, exec.Command("sh", "-c", "echo out; echo err >&2; exit 3"))
	if code := p.WaitExit(t); code != 3 {
		t.Errorf("exit code = %d, want 3", code)
	}
	if got := p.Output(); got != "out\nerr\n" {
		t.Errorf("output = %q", got)
	}
}

func TestProcessStopWaitsForItsOwnEnding(t *testing.T) {
	p := testpeer.Start(t, exec.Command("sh", "-c", "trap 'echo bye; exit 7' TERM; echo ready; sleep 1000 >&- 2>&- & wait"))
	p.WaitOutput(t, "ready")
	if code := p.Stop(t); code != 7 || !strings.HasSuffix(p.Output(), "bye\n") {
		t.Errorf("Stop = %d with output %q, want 7 and bye", code, p.Output())
	}
}

// A grandchild that holds the output open must neither hang the test nor stay.
func TestProcessLeavesNothingBehind(t *testing.T) {
	var grandchild string
	t.Run("started", func(t *testing.T) {
		p := testpeer.Start(t, exec.Command("sh", "-c", "sleep 1000 & echo pid=$!; wait"))
		p.WaitOutput(t, "\n")
		grandchild = strings.TrimPrefix(strings.TrimSpace(p.Output()), "pid=")
	})
	testpeer.WaitFor(t, "the grandchild to be gone", func() (bool, string) {
		// A zombie is gone as well: nobody may be there to reap it.
		stat, err := os.ReadFile(filepath.Join("/proc", grandchild, "stat"))
		return err != nil || strings.Contains(string(stat), ") Z "), string(stat)
	})
}

func TestProcessPauseResume(t *testing.T) {
	p := testpeer.Start(t, exec.Command("sh", "-c", "trap 'echo poked' USR1; echo ready; sleep 1000 >&- 2>&- & while :; do wait; done"))
	p.WaitOutput(t, "ready")
	p.Pause(t)
	p.Signal(syscall.SIGUSR1)
	if strings.Contains(p.Output(), "poked") {
		t.Error("a paused program ran")
	}
	p.Resume()
	p.WaitOutput(t, "poked")
	p.Pause(t) // and the cleanup still ends it
}

func TestProcessMemory(t *testing.T) {
	p := testpeer.Start(t, exec.Command("sleep", "1000"))
	if now, most := p.Memory(t, "VmRSS"), p.Memory(t, "VmHWM"); now <= 0 || now > most {
		t.Errorf("%d KiB resident, at most %d", now, most)
	}
}
