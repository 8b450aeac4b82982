package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hadrain/internal/cmdline"
	"hadrain/internal/desired"
)

// stateVerb makes a command that writes one state for each operand.
func stateVerb(a *app, use, short, long, example string) (*cobra.Command, *want) {
	w := &want{}
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: needOperands,
		ValidArgsFunction: completeKeys,
	}
	allowEmpty := cmd.Flags().Bool("allow-empty", false, "accept a glob that matches nothing")
	cmd.Flags().BoolVar(&w.force, "force", false, "also end or replace what somebody else set")
	w.verb = cmd.Name()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return (&writer{app: a, cmd: cmd, allowEmpty: *allowEmpty, only: w.only()}).run(args, *w)
	}
	return cmd, w
}

// withTTL adds --ttl to a command.
func withTTL(cmd *cobra.Command, w *want) {
	ttl := cmd.Flags().Duration("ttl", 0, "when it should be over, e.g. 4h: shown as until= and as overdue, it ends nothing")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("ttl") {
			if *ttl < time.Second {
				return cmdline.Usage(fmt.Errorf("--ttl %v: want at least a second, such as 4h", *ttl))
			}
			w.until = time.Now().UTC().Truncate(time.Second).Add(ttl.Truncate(time.Second))
		}
		return run(cmd, args)
	}
}

func drainCommand(a *app) *cobra.Command {
	cmd, w := stateVerb(a, "drain SEL...", "No new sessions; running ones go on", drainLong, drainExample)
	cmd.SuggestFor = []string{"disable"}
	w.state = desired.Drain
	cmd.Flags().Bool("detach", false, "return as soon as it is written (there is no waiting yet)")
	then := cmd.Flags().String("then", "drain", "what follows once no session is left: only drain, to stay drained, for now")
	withTTL(cmd, w)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *then != "drain" {
			return cmdline.Usage(fmt.Errorf("--then %q: want drain; nothing else can follow a drain yet", *then))
		}
		return run(cmd, args)
	}
	return cmd
}

func maintCommand(a *app) *cobra.Command {
	cmd, w := stateVerb(a, "maint SEL...", "Out of rotation, health checks stopped", maintLong, maintExample)
	w.state = desired.Maint
	withTTL(cmd, w)
	return cmd
}

func readyCommand(a *app) *cobra.Command {
	cmd, w := stateVerb(a, "ready SEL...", "In rotation, with the weight of the configuration", readyLong, readyExample)
	cmd.SuggestFor = []string{"up", "enable"}
	w.state = desired.Ready
	return cmd
}

func holdCommand(a *app) *cobra.Command {
	cmd, w := stateVerb(a, "hold SEL...", "Leave HAProxy as it is, for driving it by hand", holdLong, holdExample)
	w.state = desired.Hold
	withTTL(cmd, w)
	return cmd
}

func weightCommand(a *app) *cobra.Command {
	cmd, w := stateVerb(a, "weight SEL... N%", "In rotation, with a part of the configured weight", weightLong, weightExample)
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) < 2 {
			return errors.New("weight: name at least one server or group, and the weight last: hadrain weight web/web-01 25%")
		}
		return nil
	}
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		last := len(args) - 1
		state, err := desired.ParseState(args[last])
		if _, ok := state.Percent(); err != nil || !ok {
			return cmdline.Usage(fmt.Errorf("weight %q: want a whole number from 0%% to 100%%, after the servers, such as 25%%", args[last]))
		}
		w.state = state
		return run(cmd, args[:last])
	}
	return cmd
}

func clearCommand(a *app) *cobra.Command {
	cmd, w := stateVerb(a, "clear SEL...", "Delete the value: back to the group's, or to ready", clearLong, clearExample)
	w.delete = true
	return cmd
}

func undrainCommand(a *app) *cobra.Command {
	cmd, w := stateVerb(a, "undrain SEL...", "End a drain or a maintenance by deleting its value", undrainLong, undrainExample)
	w.delete, w.drained = true, true
	return cmd
}

// only returns what refuses keys that the verb is not for.
func (w *want) only() func(current) error {
	if !w.drained {
		return nil
	}
	return func(c current) error {
		if c.exists && c.rejected == nil {
			switch c.value.State {
			case desired.Drain, desired.Maint, desired.Ready:
				return nil
			}
		}
		if !c.exists {
			return nil
		}
		return fmt.Errorf("it is %v, not drain or maint: hadrain clear deletes any value", c)
	}
}
