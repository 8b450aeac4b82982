// Command hadrain is the operator's command line: it writes the wanted state of
// servers into Consul KV (ROOT/state/ and ROOT/journal/) and reads it back, and
// it reads /status.json of responders.
//
// It exits 0 when done, 1 on an error, 2 on usage, 4 when a guard refuses.
package main

import (
	"io"
	"log"
	"os"

	"hadrain/internal/cli"
	"hadrain/internal/cmdline"
)

func main() {
	// The libraries below hadrain dev log to the standard logger.
	log.SetOutput(io.Discard)
	os.Exit(cmdline.Main(cli.Command()))
}
