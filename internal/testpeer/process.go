package testpeer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Process is a program that a test started. It is stopped and waited for
// when the test ends, and what it printed is logged if the test failed.
type Process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	out  Output
	done chan struct{} // closed when the program has exited and its output is complete
}

// Start runs cmd in a process group of its own. Where cmd has no Stdout or
// Stderr, that stream goes to [Process.Output]. It does not wait for anything:
// see [WaitFor] and [Process.WaitOutput].
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{t: t, name: cmd.Args[0], cmd: cmd, done: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.out
	}
	// A grandchild that keeps the pipes open must not keep Wait from returning.
	cmd.WaitDelay = time.Second
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	// Cleanups do not run when the test binary is killed or times out. The
	// parent is a thread here: a test that locks itself to one (to enter a
	// namespace, say) takes along what it started.
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", p.name, err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the verdict is read from cmd.ProcessState
		// Whatever it left behind. At once: later the group's id may be another's.
		p.signalGroup(syscall.SIGKILL)
	}()
	t.Cleanup(p.cleanup)
	return p
}

func (p *Process) cleanup() {
	if !p.exited() {
		p.signalGroup(syscall.SIGCONT) // a paused program takes no SIGTERM
		p.signal(syscall.SIGTERM)
		if !p.awaitExit(5 * time.Second) {
			p.signalGroup(syscall.SIGKILL)
		}
	}
	<-p.done
	if text := p.Output(); p.t.Failed() && text != "" {
		p.t.Logf("output of %s (%v):\n%s", p.name, p.cmd.ProcessState, text)
	}
}

// Pid returns the program's process id, also after it has exited.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Memory returns an amount of memory that proc_pid_status(5) names, in KiB, such as
// VmHWM, the most that was resident, or RssAnon, what is and belongs to no file.
func (p *Process) Memory(t testing.TB, name string) (kib int) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "\n"+name+":")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("%s of %s: %v", name, p.name, err)
	}
	return kib
}

// Output returns what the program has printed so far.
func (p *Process) Output() string { return p.out.String() }

// Done returns a channel that is closed once the program has exited and its
// output is complete.
func (p *Process) Done() <-chan struct{} { return p.done }

// WaitOutput waits until the program has printed text.
func (p *Process) WaitOutput(t testing.TB, text string) {
	t.Helper()
	WaitFor(t, fmt.Sprintf("%s to print %q", p.name, text), func() (bool, string) {
		exited := p.exited() // before the output is read: it is complete then
		got := p.Output()
		if exited && !strings.Contains(got, text) {
			t.Fatalf("%s exited (%v) before it printed %q:\n%s", p.name, p.cmd.ProcessState, text, got)
		}
		return strings.Contains(got, text), got
	})
}

// WaitExit waits for the program to exit by itself and returns its exit code,
// or -1 if a signal ended it.
func (p *Process) WaitExit(t testing.TB) int {
	t.Helper()
	if limit := Timeout(t); !p.awaitExit(limit) {
		t.Fatalf("%s still runs after %v:\n%s", p.name, limit, p.Output())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends sig to the program alone. A program that has exited already is
// no error: what the test waits for next tells.
func (p *Process) Signal(sig syscall.Signal) { p.signal(sig) }

// Stop sends SIGTERM, waits, and returns the exit code.
func (p *Process) Stop(t testing.TB) int {
	t.Helper()
	p.signal(syscall.SIGTERM)
	return p.WaitExit(t)
}

// Kill sends SIGKILL to the program and whatever it started, and waits.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	p.signalGroup(syscall.SIGKILL)
	p.WaitExit(t)
}

// Pause sends SIGSTOP, and returns when the program has stopped: its sockets
// still take connections, and nobody answers them.
func (p *Process) Pause(t testing.TB) {
	t.Helper()
	p.signalGroup(syscall.SIGSTOP)
	WaitFor(t, p.name+" to stop", func() (bool, string) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
		if err != nil {
			return false, err.Error()
		}
		// "pid (name) state …"; the name may hold anything (proc(5)).
		state := string(stat[bytes.LastIndexByte(stat, ')')+1:])
		return strings.HasPrefix(state, " T"), "state" + state[:2]
	})
}

// Resume ends a [Process.Pause].
func (p *Process) Resume() { p.signalGroup(syscall.SIGCONT) }

func (p *Process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *Process) awaitExit(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

func (p *Process) signal(sig syscall.Signal) {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("sending %v to %s: %v", sig, p.name, err)
	}
}

func (p *Process) signalGroup(sig syscall.Signal) {
	if err := syscall.Kill(-p.Pid(), sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		p.t.Errorf("sending %v to the process group of %s: %v", sig, p.name, err)
	}
}
