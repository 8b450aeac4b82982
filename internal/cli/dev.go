package cli

import (
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"hadrain/internal/cmdline"
	"hadrain/internal/dev"
)

func devCommand() *cobra.Command {
	var opts dev.Options
	cmd := &cobra.Command{
		Use: "dev", Short: "Everything on this machine, to try and to learn", Long: devLong, Example: devExample,
		Args: noOperands, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.BoolVar(&opts.Consul, "consul", false, "use a real Consul: the one at CONSUL_HTTP_ADDR if it answers, else one started from the PATH")
	f.BoolVar(&opts.Demo, "demo", false, "play a story of a quarter of a minute, then end")
	f.StringVar(&opts.Frontend, "frontend", "", "where HAProxy listens for requests, HOST:PORT (default a free port of 127.0.0.1)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if _, _, err := net.SplitHostPort(opts.Frontend); opts.Frontend != "" && err != nil {
			return cmdline.Usage(fmt.Errorf("--frontend %q: want HOST:PORT, such as 127.0.0.1:8080", opts.Frontend))
		}
		opts.Program = os.Args[0]
		return dev.Run(cmd.Context(), opts, cmd.OutOrStdout())
	}
	return cmd
}
