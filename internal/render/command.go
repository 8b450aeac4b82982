package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// DefaultTimeout is how long a template may take, and then its command.
const DefaultTimeout = 30 * time.Second

// maxStderr is how much of what a command says is reported, from its end.
const maxStderr = 2048

// runCommand runs command by sh, and kills what runs longer than limit. The
// error holds what it wrote to standard error.
func runCommand(ctx context.Context, command string, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it ran longer than %s", limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	var stderr tail
	cmd.Stderr = &stderr
	cmd.Env = withoutToken(os.Environ())
	// What the shell started has to end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	// What the command leaves behind, such as a daemon that it started, may hold
	// its standard error open: the command itself has ended well.
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = context.Cause(ctx)
	}
	if text := strings.TrimSpace(stderr.String()); text != "" {
		return fmt.Errorf("command %q: %w: %s", command, err, text)
	}
	return fmt.Errorf("command %q: %w", command, err)
}

// withoutToken drops Consul's token: the command has no use for it.
func withoutToken(env []string) []string {
	kept := env[:0:0]
	for _, entry := range env {
		if !strings.HasPrefix(entry, "CONSUL_HTTP_TOKEN=") && !strings.HasPrefix(entry, "CONSUL_HTTP_AUTH=") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// tail keeps the last bytes that were written to it.
type tail struct{ buf bytes.Buffer }

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	t.buf.Write(p)
	if extra := t.buf.Len() - maxStderr; extra > 0 {
		t.buf.Next(extra)
	}
	return len(p), nil
}

// String returns the last bytes.
func (t *tail) String() string { return t.buf.String() }
