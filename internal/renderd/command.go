// Package renderd is the command line of hadrain-render.
package renderd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"hadrain/internal/cmdline"
	"hadrain/internal/httpserve"
	"hadrain/internal/render"
	"hadrain/internal/statefile"
	"hadrain/internal/version"
)

type options struct {
	render.Config
	listen string
}

// Command returns the command line of hadrain-render.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "hadrain-render",
		Short:   "Keep a local state file as Consul wants it",
		Version: version.String(),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd, o) },
	}
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	flags := cmd.Flags()
	flags.StringVar(&o.Root, "kv-root", render.DefaultRoot, "root of Hadrain's keys in Consul KV")
	flags.StringVar(&o.State, "state", render.DefaultState, "the state file; empty: none is written")
	flags.DurationVar(&o.StartTimeout, "start-timeout", render.DefaultStartTimeout, "exit if no read of Consul was accepted within this time after the start")
	flags.DurationVar(&o.Quiet, "quiet", render.DefaultQuiet, "least time between an answer of Consul that changes something and the next read")
	flags.IntVar(&o.MaxKeys, "max-keys", render.DefaultMaxKeys, "refuse a state of more keys; 0: any number")
	flags.Int64Var(&o.Consul.MaxBytes, "max-bytes", render.DefaultMaxBytes, "refuse an answer of Consul of more bytes; 0: any number")
	flags.Var((*templates)(&o.Templates), "template", "also make DEST of the template SRC, then run COMMAND by sh; if that fails, DEST is put back; repeatable (in the variable: one a line)")
	flags.StringVar(&o.listen, "http.listen", "127.0.0.1:9778", "address for metrics and status; empty: none")
	flags.StringVar(&o.WebConfig, "web.config.file", "", "Prometheus web configuration file, for TLS and authentication")
	o.Consul.AddFlags(flags)
	return cmd
}

func run(cmd *cobra.Command, o options) error {
	if err := errors.Join(o.Check(), httpserve.Check(o.WebConfig)); err != nil {
		return cmdline.Usage(err)
	}
	if o.listen != "" {
		l, err := net.Listen("tcp", o.listen)
		if err != nil {
			return fmt.Errorf("listening for HTTP: %w; choose another address with --http.listen", err)
		}
		o.Listener = l
	}
	o.Notify = notify
	logger := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	err := render.Run(cmd.Context(), o.Config, logger)
	if errors.Is(err, statefile.ErrLocked) {
		return cmdline.Exit(cmdline.ExitLock, err)
	}
	return err
}

// notify tells systemd. Without it there is no socket, and a socket that takes
// nothing is its business.
func notify(state string) { _, _ = daemon.SdNotify(false, state) }
