package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a child may take to end after SIGTERM.
const stopGrace = 10 * time.Second

// process is a child that cannot outlive hadrain: the kernel sends it SIGTERM
// when hadrain dies, even by SIGKILL.
type process struct {
	name    string
	log     string // path of the file with its output
	started *os.Process
	done    chan struct{} // closed when it has ended and was waited for
	err     error         // how it ended; read it after done
}

// startProcess starts cmd with its output in the file log. The caller ends it
// with [process.stop].
func startProcess(name string, cmd *exec.Cmd, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	// A group of its own keeps the terminal's Ctrl-C away: it ends in our order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	p := &process{name: name, log: log, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		defer out.Close()
		// Pdeathsig follows the thread that made the child, not the process
		// (prctl(2), PR_SET_PDEATHSIG), so that thread stays until the end.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.started = cmd.Process
		started <- nil
		p.err = cmd.Wait()
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// signal sends sig to the child; to one that has ended it is an error.
func (p *process) signal(sig os.Signal) error {
	if err := p.started.Signal(sig); err != nil {
		return fmt.Errorf("sending %v to %s: %w", sig, p.name, err)
	}
	return nil
}

// stop ends the child and waits for it. It fails only if the child had to be
// killed.
func (p *process) stop() error {
	if err := p.started.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		<-p.done
		return nil
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopGrace):
		_ = p.started.Kill()
		<-p.done
		return fmt.Errorf("%s did not end within %v of SIGTERM and was killed", p.name, stopGrace)
	}
}

// await waits until the child does what p looks for. A child that ends first is
// an error; every error shows what the child last said.
func (p *process) await(ctx context.Context, ready probe, deadline time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	watch := make(chan struct{})
	go func() {
		defer close(watch)
		select {
		case <-p.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	_, err := await(ctx, ready, deadline)
	cancel()
	<-watch
	if err == nil {
		return nil
	}
	select {
	case <-p.done:
		return p.failure()
	default:
		return fmt.Errorf("waiting for %s: %w; its last lines:\n%s", p.name, err, p.lastLines(8))
	}
}

// failure says how the child ended and what it last said. Call it after done.
func (p *process) failure() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended by itself (%s); its last lines:\n%s", p.name, how, p.lastLines(8))
}

// lastLines returns the end of the child's output.
func (p *process) lastLines(n int) string {
	raw, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-n):], "\n  ")
}
