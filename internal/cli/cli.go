package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	consulapi "github.com/hashicorp/consul/api"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hadrain/internal/cmdline"
	"hadrain/internal/kv"
	"hadrain/internal/version"
)

// app is what the global flags say.
type app struct {
	consul     kv.Config
	root       string
	output     string
	yes        bool
	dryRun     bool
	timeout    time.Duration
	responders []string
	as         string
	reason     string

	responderCA string
}

// Command returns the whole command line.
func Command() *cobra.Command {
	a := &app{}
	cmd := &cobra.Command{
		Use:               "hadrain",
		Short:             "Take servers behind HAProxy out of rotation and back, on every load balancer",
		Long:              rootLong,
		Example:           rootExample,
		Version:           version.String(),
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	a.addFlags(cmd)
	// It fails only for a flag that is not there, or that has one already.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]cobra.Completion{"table", "wide", "json"}, cobra.ShellCompDirectiveNoFileComp))
	reads := append(consulFlags(), "kv-root", "output", "timeout", "responder", "responder-ca-file")
	cmd.AddCommand(
		using(initCommand(a), append(reads, "dry-run")...),
		drainCommand(a), undrainCommand(a), maintCommand(a), readyCommand(a), weightCommand(a), holdCommand(a), clearCommand(a),
		using(statusCommand(a), reads...), using(queryCommand(a), "output", "timeout"),
		using(gateCommand()), using(probeCommand(a), "responder-ca-file"), using(devCommand()), using(versionCommand(a), "output"),
	)
	return cmd
}

// using says which global flags a verb has a use for.
func using(cmd *cobra.Command, flags ...string) *cobra.Command {
	cmdline.UseGlobals(cmd, flags...)
	return cmd
}

// consulFlags returns the names of the flags that say how Consul is reached.
func consulFlags() []string {
	var names []string
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(kv.Config).AddFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

func (a *app) addFlags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.SortFlags = false
	f.StringVar(&a.root, "kv-root", "hadrain", "root of Hadrain's keys in Consul KV")
	f.StringVarP(&a.output, "output", "o", "table", "what to print on standard output: table, wide or json")
	f.BoolVar(&a.yes, "yes", false, "do not ask before writing")
	f.BoolVar(&a.dryRun, "dry-run", false, "show what would be written, write nothing")
	f.DurationVar(&a.timeout, "timeout", 10*time.Second, "how long to wait for each answer of Consul or of a responder")
	f.StringSliceVar(&a.responders, "responder", []string{"http://127.0.0.1:9779"}, "URL of a responder that knows rows, with USER:PASSWORD@ if it wants them (others see a command line, but not the variable); repeatable, or several with commas")
	f.StringVar(&a.responderCA, "responder-ca-file", "", "certificate of the CA of responders' https (default those that this machine trusts)")
	f.StringVar(&a.as, "as", "", "who is doing this (default $SUDO_USER or the login name, @ host)")
	f.StringVar(&a.reason, "reason", "", "why, for whoever finds it")
	a.consul.AddFlags(f)
}

// They keep values small and notes readable, in bytes.
const (
	maxReason = 500
	maxOwner  = 200
)

// check refuses global flags that no verb can work with.
func (a *app) check() error {
	switch a.output {
	case "table", "wide", "json":
	default:
		return cmdline.Usage(fmt.Errorf("--output %q: want table, wide or json", a.output))
	}
	if err := kv.CheckRoot(a.root); err != nil {
		return cmdline.Usage(fmt.Errorf("--kv-root: %w", err))
	}
	if a.timeout <= 0 {
		return cmdline.Usage(fmt.Errorf("--timeout %v: want more than 0, such as 10s", a.timeout))
	}
	if len(a.reason) > maxReason {
		return cmdline.Usage(fmt.Errorf("--reason: %d bytes long, at most %d fit", len(a.reason), maxReason))
	}
	if len(a.as) > maxOwner {
		return cmdline.Usage(fmt.Errorf("--as: %d bytes long, at most %d fit", len(a.as), maxOwner))
	}
	_, err := responderURLs(a.responders)
	return err
}

func (a *app) json() bool { return a.output == "json" }

// store returns the store that the flags and the environment name.
func (a *app) store() (*kv.Store, error) {
	if err := a.consul.Check(); err != nil {
		return nil, cmdline.Usage(err)
	}
	return kv.NewStore(a.consul.ReadOnce(), a.root)
}

// read reads all states.
func (a *app) read(ctx context.Context, store *kv.Store) (*kv.State, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	state, err := store.Read(ctx)
	return state, a.explain(err)
}

// explain adds to an error of the store what only the command line knows, and
// gives it its exit status.
func (a *app) explain(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*kv.ConflictError](err); ok {
		return refusal(err)
	}
	if _, ok := errors.AsType[*kv.OtherIDError](err); ok {
		return refusal(err)
	}
	if _, ok := errors.AsType[*kv.LimitError](err); ok {
		return refusal(err)
	}
	read, ok := errors.AsType[*kv.ReadError](err)
	switch {
	case !ok:
		return err
	case read.Reason == kv.NoSentinel:
		return fmt.Errorf("%s/state/ is not initialised in Consul at %s (address %s, root from --kv-root); "+
			"after a loss of data run hadrain init --id UUID, with the id in the first line of a state file; if it is new, run: hadrain init",
			a.root, a.consul.Shown(), a.origin())
	case read.Reason == kv.Timeout, read.Reason == kv.Transport:
		return fmt.Errorf("%s (address %s)", read.Message, a.origin())
	}
	return errors.New(read.Message)
}

// origin says where the address of Consul came from.
func (a *app) origin() string {
	switch {
	case a.consul.Address != "":
		return "from --consul-addr or HADRAIN_CONSUL_ADDR"
	case os.Getenv(consulapi.HTTPAddrEnvName) != "":
		return "from CONSUL_HTTP_ADDR"
	}
	return "is the default; set CONSUL_HTTP_ADDR or --consul-addr"
}

// needOperands is the check of arguments of verbs that take servers.
func needOperands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s: name at least one server (backend/server), group (canary) or glob ('web/*')", cmd.Name())
	}
	return nil
}

// noOperands is the check of arguments of verbs that take none.
func noOperands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s: takes no arguments, got %s", cmd.Name(), quoted(args))
	}
	return nil
}

func quoted(args []string) string {
	q := make([]string, len(args))
	for i, arg := range args {
		q[i] = fmt.Sprintf("%q", arg)
	}
	return strings.Join(q, " ")
}
