// Command hadrain-render keeps a local state file as Consul wants it.
//
// It reads the keys under <kv-root>/state/ in Consul KV and the state file of
// its last run, and it writes the state file (/var/lib/hadrain/state, with
// .state.lock and, while it writes, .state.tmp-* beside it), which
// hadrain-responder serves to HAProxy. With --template SRC:DEST[:COMMAND] it also
// reads SRC and writes DEST with .DEST.lock beside it, and while COMMAND has not
// given its verdict .DEST.pending and .DEST.previous; with --templates FILE for several.
// SIGHUP makes it read that file, templates and certificates again.
//
// It exits 0 after SIGINT or SIGTERM, 1 on a run-time error, such as no usable
// answer of Consul at the start, 2 on usage, and 3 if another process holds the
// lock of a file that this one is to write.
package main

import (
	"io"
	"log"
	"os"

	"hadrain/internal/cmdline"
	"hadrain/internal/renderd"
)

func main() {
	// consul-template logs every step, and secrets, to the standard logger.
	log.SetOutput(io.Discard)
	os.Exit(cmdline.Main(renderd.Command()))
}
