// Package renderd is the command line of hadrain-render.
package renderd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"hadrain/internal/cmdline"
	"hadrain/internal/footprint"
	"hadrain/internal/httpserve"
	"hadrain/internal/render"
	"hadrain/internal/statefile"
	"hadrain/internal/systemd"
	"hadrain/internal/version"
)

const long = `hadrain-render keeps a local state file as Consul wants it, for
hadrain-responder to serve; and any other file that a template makes of the same
keys, such as an upstream of nginx.

Templates are in the language of consul-template. Its functions of keys read
those under the state prefix; of those that reach outside, a template may use
what is allowed for it in the file of --templates:

  templates:
    - source: /etc/hadrain/upstream.conf.tmpl
      destination: /etc/nginx/conf.d/upstream.conf
      command: nginx -t && nginx -s reload  # if it fails, destination is put back
      timeout: 30s                          # of the template, then of command; this is the default
      allow: [env, file]                    # also: envOrDefault, mustEnv, plugin, sockaddr, writeToFile

Each flag is also read from a variable, e.g. HADRAIN_KV_ROOT for --kv-root; a
flag beats its variable. Consul is found as its own tools find it, by CONSUL_…
variables; a token file is read anew for each request. SIGHUP reads the file of
--templates, the templates' sources, certificates and authorities again; what
cannot be used is reported, and the one before stays. The file of a template
that is listed no more stays as it is.

Exit status: 0 after SIGINT or SIGTERM, 1 run-time error (such as no usable
answer of Consul at the start), 2 usage, 3 another process holds the lock of a
file that this one is to write.`

type options struct {
	render.Config
	listen    string
	templates string
}

// Command returns the command line of hadrain-render.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "hadrain-render",
		Short:   "Keep a local state file as Consul wants it",
		Long:    long,
		Version: version.String(),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd, o) },
	}
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	flags := cmd.Flags()
	flags.StringVar(&o.Root, "kv-root", render.DefaultRoot, "root of Hadrain's keys in Consul KV")
	flags.StringVar(&o.State, "state", render.DefaultState, "the state file; empty: none is written")
	flags.DurationVar(&o.StartTimeout, "start-timeout", render.DefaultStartTimeout, "exit if no read of Consul was accepted within this time after the start")
	flags.DurationVar(&o.Quiet, "quiet", render.DefaultQuiet, "least time between an answer of Consul that changes something and the next read; 10ms to 1m")
	flags.IntVar(&o.MaxKeys, "max-keys", render.DefaultMaxKeys, "refuse a state of more keys; 0: any number")
	flags.Int64Var(&o.Consul.MaxBytes, "max-bytes", render.DefaultMaxBytes, "refuse an answer of Consul of more bytes; 0: any number")
	flags.Var((*templates)(&o.Templates), "template", "also make DEST of the template SRC, then run COMMAND by sh; if that fails, DEST is put back; repeatable (in the variable: one a line)")
	flags.StringVar(&o.templates, "templates", "", "YAML `file` of more templates, see above")
	flags.StringVar(&o.listen, "http.listen", "127.0.0.1:9778", "address for metrics and status; empty: none")
	flags.StringVar(&o.WebConfig, "web.config.file", "", "Prometheus web configuration file, for TLS and authentication")
	o.Consul.AddFlags(flags)
	return cmd
}

// gcPercent trades processor for memory: nearly all of it is garbage of one
// answer of Consul, and there is one when something changes. $GOGC beats it.
const gcPercent = 75

func run(cmd *cobra.Command, o options) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if o.templates != "" {
		o.List = listed(o.Templates, o.templates)
		all, err := o.List()
		if err != nil {
			return cmdline.Usage(err)
		}
		o.Templates = all
	}
	if err := errors.Join(o.Check(), httpserve.Check(o.WebConfig)); err != nil {
		return cmdline.Usage(err)
	}
	if o.listen != "" {
		o.Listen = listens(o.listen)
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	logger := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	release := releases(footprint.Release, logger)
	o.Reload, o.Notify, o.Ready = hangups, systemd.NewNotifier(logger).Notify, release
	release()
	err := render.Run(cmd.Context(), o.Config, logger)
	if errors.Is(err, statefile.ErrLocked) {
		return cmdline.Exit(cmdline.ExitLock, err)
	}
	return err
}

// listens returns a function that opens the port for HTTP.
func listens(address string) func() (net.Listener, error) {
	return func() (net.Listener, error) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, fmt.Errorf("listening for HTTP: %w; choose another address with --http.listen", err)
		}
		return l, nil
	}
}

// releases returns a function that gives back what was needed only to start: most
// of what is resident of a program with so many packages. It is called twice, since
// connecting and the first file need much that is not needed again either; where it
// cannot be done, it says so once.
func releases(release func() error, log *slog.Logger) func() {
	said := false
	return func() {
		if err := release(); err != nil && !said {
			said = true
			log.Info("code that only the start needed stays in memory", "error", err)
		}
	}
}

// listed returns a function that returns the templates of flags and those that
// are in the file at path when it is called.
func listed(flags []render.Template, path string) func() ([]render.Template, error) {
	return func() ([]render.Template, error) {
		more, err := readTemplates(path)
		return append(slices.Clip(flags), more...), err
	}
}
