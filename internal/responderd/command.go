// Package responderd is the command line of hadrain-responder: its flags, and
// the sockets that it opens or is passed.
package responderd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"hadrain/internal/cmdline"
	"hadrain/internal/desired"
	"hadrain/internal/responder"
	"hadrain/internal/systemd"
	"hadrain/internal/version"
)

const long = `hadrain-responder tells HAProxy which servers may take traffic.

It reads the state file that hadrain-render writes and answers HAProxy's agent
checks from it: one line of keys in, one line out. Without a state file it
answers "unsynced", which changes nothing in HAProxy.

Under systemd it serves the sockets it is given: those named "agent", or not
named at all, to HAProxy, those named "http" to people and Prometheus. Without,
it opens --listen and --http.listen itself.

Each flag is also read from a variable, e.g. HADRAIN_HTTP_LISTEN for
--http.listen; a flag beats its variable. SIGHUP reads the state file again.`

type options struct {
	state          string
	listen         []string
	agentUp        bool
	httpListen     string
	webConfig      string
	maxConnections int
	maxRows        int
}

// Command returns the command line of hadrain-responder.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     responder.Name,
		Short:   "Answer HAProxy's agent checks from the state file",
		Long:    long,
		Args:    cobra.NoArgs,
		Version: version.String(),
		RunE: func(c *cobra.Command, _ []string) error {
			return run(c.Context(), o, c.Flags().Changed, c.ErrOrStderr())
		},
	}
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	f := cmd.Flags()
	f.StringVar(&o.state, "state", "/var/lib/hadrain/state", "state file to answer from")
	f.StringSliceVar(&o.listen, "listen", []string{"127.0.0.1:9777"}, "address to listen on for HAProxy, host:port or the path of a unix socket; repeatable; not with systemd's sockets")
	f.BoolVar(&o.agentUp, "agent-up", false, `put the health word "up" before answers (servers added at run time need it)`)
	f.StringVar(&o.httpListen, "http.listen", "127.0.0.1:9779", "address for /metrics, /status.json and the page; '' switches HTTP off; not with systemd's sockets")
	f.StringVar(&o.webConfig, "web.config.file", "", "Prometheus web configuration file, for TLS and basic auth")
	f.IntVar(&o.maxConnections, "max-connections", responder.DefaultMaxConnections, "connections of agent checks open at once")
	f.IntVar(&o.maxRows, "max-rows", responder.DefaultMaxRows, "rows to remember for the page and /status.json")
	return cmd
}

func run(ctx context.Context, o options, given func(flag string) bool, stderr io.Writer) error {
	if o.maxConnections < 1 || o.maxRows < 1 {
		return cmdline.Usage(errors.New("--max-connections and --max-rows: want at least 1"))
	}
	sockets, err := o.sockets(ctx, given)
	if err != nil {
		return err
	}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return cmdline.Usage(err)
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	log := slog.New(slog.NewTextHandler(stderr, nil))
	cfg := responder.Config{
		State: o.state, Agent: sockets.agent, HTTP: sockets.http, WebConfig: o.webConfig,
		MaxConnections: o.maxConnections, MaxRows: o.maxRows,
		Reload: hangups, Notify: systemd.NewNotifier(log).Notify, Watchdog: watchdog,
	}
	if o.agentUp {
		cfg.Form = desired.Up
	}
	return responder.Run(ctx, cfg, log)
}
