// Command hadrain-responder answers HAProxy's agent checks from the state file
// /var/lib/hadrain/state, which hadrain-render writes. It writes nothing.
package main

import (
	"os"

	"hadrain/internal/cmdline"
	"hadrain/internal/responderd"
)

func main() { os.Exit(cmdline.Main(responderd.Command())) }
