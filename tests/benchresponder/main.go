// Command benchresponder measures what one agent check costs hadrain-responder,
// beside the least it could cost (an epoll server in C), the plain way in Go (a
// goroutine and a net.Conn for each check), and the way without a daemon (a
// shell for each check that greps the state file, as systemd's Accept=yes does).
//
// The variants run one after the other in random order, round by round, and
// each ratio is the median over the rounds of that between two measurements of
// one round: absolute times drift with whatever else the machine does. Then
// come a long run, a stall, and a real HAProxy with a thousand servers; in the
// end each goal with its verdict. It needs cc, and root for a network namespace
// of its own, without which others' traffic is counted along.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	if len(os.Args) > 2 && serveVerbs[os.Args[1]] != nil {
		fmt.Fprintln(os.Stderr, serveVerbs[os.Args[1]](os.Args[2:]))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchresponder:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	b := &bench{out: out, results: map[string]map[string][]sample{}}
	quick := os.Getenv("QUICK") != ""
	assert := false
	flags := flag.NewFlagSet("benchresponder", flag.ContinueOnError)
	flags.BoolVar(&quick, "quick", quick, "less of everything, in 40 s; less precise (or QUICK=1)")
	flags.BoolVar(&assert, "assert", false, "fail if a goal is not met")
	flags.IntVar(&b.rounds, "rounds", 5, "rounds")
	flags.Float64Var(&b.seconds, "seconds", 2, "length of each measurement")
	flags.Float64Var(&b.long, "long", 60, "length of the long run in seconds; half of it with HAProxy")
	flags.StringVar(&b.dir, "dir", "", "directory with what was built; for the program itself")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if quick {
		b.rounds, b.seconds, b.long = 1, 1.2, 5
	}
	if b.dir == "" {
		return b.buildAndReenter(ctx, args)
	}
	if err := b.withSystemd(func() error { return b.measureAll(ctx) }); err != nil {
		return err
	}
	if unmet := b.verdicts(); assert && unmet > 0 {
		return fmt.Errorf("%d goals not met", unmet)
	}
	return nil
}

// priority is what everything measured gets, before whatever else runs.
const priority = -15

// buildAndReenter builds everything, and runs this program again in a network
// namespace of its own.
func (b *bench) buildAndReenter(ctx context.Context, args []string) (err error) {
	if b.dir, err = os.MkdirTemp("", "hadrain-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	fmt.Fprintln(os.Stderr, "building")
	if err := b.build(ctx); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{"-dir", b.dir}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET
		// Priority belongs to a thread, and what it starts inherits it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, priority); err != nil {
			fmt.Fprintln(os.Stderr, "without priority over other programs, which makes more noise:", err)
		}
	}
	return cmd.Run()
}
