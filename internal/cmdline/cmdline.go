// Package cmdline runs a command the way every program of Hadrain behaves:
// signals end its context, HADRAIN_… variables stand in for flags that were not
// given, errors go to standard error with the program's name, and the exit
// status says what kind of error it was.
package cmdline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit statuses that all programs share. The CLI has more of its own.
const (
	ExitError = 1 // a run-time error
	ExitUsage = 2 // flags or arguments are wrong; nothing was done
	ExitLock  = 3 // a daemon's file is written by another process
	// ExitPipe is what a shell reports of a command that SIGPIPE ended: whoever
	// read standard output has read enough.
	ExitPipe = 128 + int(syscall.SIGPIPE)
)

// exitError is an error that decides the exit status.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// Exit returns err with the exit status that it is to lead to. A nil err
// returns nil.
func Exit(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code, err}
}

// Usage marks err as an error in flags or arguments.
func Usage(err error) error { return Exit(ExitUsage, err) }

// Code returns the exit status for an error of a command: 0 for nil, the one
// given to [Exit], else 1.
func Code(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return ExitError
}

// Main runs cmd with the arguments and the environment of the process, under a
// context that ends at SIGINT or SIGTERM, and returns the exit status.
func Main(cmd *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A journal that restarts, or a reader of messages who leaves ("2>&1 | head"),
	// must end neither a daemon nor a command between two steps. The runtime ends
	// a program that writes to nobody unless somebody wants to be told. To ignore
	// the signal would be handed down to children.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return Code(Run(ctx, cmd, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// Run runs cmd with args. It writes an error to stderr before it returns it,
// unless that is only the end of a reader of standard output.
func Run(ctx context.Context, cmd *cobra.Command, args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) error {
	Prepare(cmd, lookup)
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	ran, err := cmd.ExecuteContextC(ctx)
	if err == nil {
		return nil
	}
	if unread(err) {
		return Exit(ExitPipe, err)
	}
	err = asUsage(cmd, err)
	// If standard error is closed there is nowhere left to say so.
	_, _ = fmt.Fprintf(stderr, "%s: %v\n", cmd.Name(), err)
	if Code(err) == ExitUsage {
		_, _ = fmt.Fprintf(stderr, "hint: %s --help\n", ran.CommandPath())
	}
	return err
}

// unread reports whether err says that nobody reads standard output any more,
// which is nothing to complain of.
func unread(err error) bool {
	path, ok := errors.AsType[*fs.PathError](err)
	return ok && path.Path == os.Stdout.Name() && errors.Is(err, syscall.EPIPE)
}

// asUsage gives errors that cobra itself made, such as for an unknown verb, the
// exit status of usage errors.
func asUsage(cmd *cobra.Command, err error) error {
	if _, ok := errors.AsType[*exitError](err); !ok && strings.HasPrefix(err.Error(), "unknown command") {
		return Usage(err)
	}
	return err
}

// Prepare sets up cmd and its subcommands: errors are printed by [Run] alone,
// errors in flags and in the number of arguments are usage errors, and before a
// command runs its flags are completed from the environment.
func Prepare(cmd *cobra.Command, lookup func(string) (string, bool)) {
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Usage(err) })
	cmd.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return FromEnv(c.Flags(), lookup) }
	// The library adds these two when it runs; they are to behave as the others.
	cmd.InitDefaultHelpCmd()
	cmd.InitDefaultCompletionCmd()
	for _, sub := range cmd.Commands() {
		refuseUnknown(cmd, sub)
	}
	wrapArgs(cmd)
}

// refuseUnknown makes a word that names no command a usage error where the
// library only prints help: after "help", and after a command that has nothing
// but subcommands.
func refuseUnknown(root, cmd *cobra.Command) {
	unknown := func(of *cobra.Command, args []string) error {
		return Usage(fmt.Errorf("unknown command %q for %q", args[0], of.CommandPath()))
	}
	switch {
	case cmd.Name() == "help":
		cmd.Args = func(_ *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err != nil {
				found, rest = root, args
			}
			if len(rest) > 0 {
				return unknown(found, rest)
			}
			return nil
		}
	case cmd.HasSubCommands() && !cmd.Runnable():
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(c, args)
			}
			return c.Help()
		}
	}
}

func wrapArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error { return usageOnce(check(c, args)) }
	}
	for _, sub := range cmd.Commands() {
		wrapArgs(sub)
	}
}

func usageOnce(err error) error {
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	return Usage(err)
}

// Variable returns the name of the variable that stands in for a flag:
// HADRAIN_KV_ROOT for kv-root, HADRAIN_HTTP_LISTEN for http.listen.
func Variable(flag string) string {
	return "HADRAIN_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(flag))
}

// FromEnv sets each flag that was not given from its variable, if that is set.
// A variable that is set but empty counts: HADRAIN_STATE= switches the state
// file off as an empty --state does. The value of a repeatable flag is split at commas.
func FromEnv(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || f.Name == "version" {
			return
		}
		name := Variable(f.Name)
		value, ok := lookup(name)
		if !ok {
			return
		}
		if e := flags.Set(f.Name, value); e != nil {
			err = errors.Join(err, Usage(fmt.Errorf("variable %s: %w", name, e)))
		}
	})
	return err
}
