package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
)

const gateLong = `Wait until a read of Consul was accepted since this machine has booted.

hadrain-gate.service runs it before HAProxy starts: a machine that is new, or
was off for a week, would send traffic to servers that are drained meanwhile.
It waits at most --boot-wait, says what HAProxy starts with, and succeeds in
either case. The sign is the file --synced, which hadrain-render.service makes
and which does not survive a reboot.`

// A gate is what stands between the boot and HAProxy's start.
type gate struct {
	wait   time.Duration // at most
	synced string        // exists once a read was accepted in this boot
	state  string        // the state file
}

func gateCommand() *cobra.Command {
	var g gate
	cmd := &cobra.Command{
		Use: "gate", Short: "At boot: wait for a first accepted read of Consul", Long: gateLong,
		Args: noOperands, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.DurationVar(&g.wait, "boot-wait", 30*time.Second, "how long to wait at most; 0: not at all")
	f.StringVar(&g.synced, "synced", "/run/hadrain/synced", "file that exists once a read was accepted")
	f.StringVar(&g.state, "state", "/var/lib/hadrain/state", "the state file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		start := time.Now()
		passed, err := g.pass(cmd.Context())
		if err != nil {
			return err
		}
		text := fmt.Sprintf("a read of Consul was accepted (waited %s): HAProxy starts with %s", since(start), g.found(time.Now()))
		if !passed {
			text = priority(warning) + fmt.Sprintf("no accepted read of Consul within %s: HAProxy starts with %s; next: journalctl -b -u hadrain-render",
				g.wait, g.found(time.Now()))
		}
		_, err = fmt.Fprintln(cmd.ErrOrStderr(), text)
		return err
	}
	return cmd
}

// gatePoll is how often it looks for the sign. A watch would need a fallback
// for a directory that is not there yet, and a boot does not feel the difference.
const gatePoll = 50 * time.Millisecond

// pass waits for the sign and reports whether it was seen in time. The error is
// that of a context that ended.
func (g *gate) pass(ctx context.Context) (bool, error) {
	timer := time.NewTimer(max(g.wait, 0))
	defer timer.Stop()
	tick := time.NewTicker(gatePoll)
	defer tick.Stop()
	for {
		if _, err := os.Stat(g.synced); err == nil {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("waiting for an accepted read of Consul: %w", context.Cause(ctx))
		case <-timer.C:
			return false, nil
		case <-tick.C:
		}
	}
}

// found says which state HAProxy is going to be told.
func (g *gate) found(now time.Time) string {
	file, read, err := statefile.Load(g.state)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no state, every server as its configuration says"
	case err != nil:
		return fmt.Sprintf("no state, every server as its configuration says (%v)", err)
	}
	return fmt.Sprintf("%s, index %d, read %s (%s ago)",
		desired.Count(len(file.Rows), "key"), file.Index, read.UTC().Format(time.RFC3339), now.Sub(read).Round(time.Second))
}

func since(start time.Time) time.Duration { return time.Since(start).Round(10 * time.Millisecond) }

// warning is the journal's priority of what somebody should look at.
const warning = 4

// priority returns the mark by which the journal knows a line's priority, see
// sd-daemon(3); nothing for people.
func priority(level int) string {
	if os.Getenv("JOURNAL_STREAM") == "" {
		return ""
	}
	return fmt.Sprintf("<%d>", level)
}
