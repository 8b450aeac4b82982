package dev

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// welcome says what runs where, and what to try.
func (r *runner) welcome(agent *net.TCPAddr) {
	line := func(name, where, what string) {
		fmt.Fprintln(r.out, strings.TrimRight(fmt.Sprintf("  %-11s %-26s  %s", name, where, what), " "))
	}
	fmt.Fprintf(r.out, "Hadrain on one machine, for as long as this program runs:\n\n")
	line("store", r.store.config().Shown(), r.store.what())
	line("render", r.render, "its status; store -> state file")
	line("responder", r.responder, fmt.Sprintf("its status; state file -> agent checks at %v", agent))
	if r.haproxy != nil {
		line("site", r.frontend, fmt.Sprintf("HAProxy with %d small web servers, %d requests a second", len(r.servers), requestsPerSecond))
		line("statistics", r.statsPage, fmt.Sprintf("HAProxy's own page; %s reloads HAProxy", r.haproxy.reloadCommand()))
	}
	line("state file", r.statePath, "")
	line("log", r.log, "of render and responder")
	if r.haproxy == nil {
		fmt.Fprintf(r.out, "\nHAProxy is not installed, so there is no traffic to watch.\nOn Debian or Ubuntu: sudo apt-get install haproxy, then start this again.\n")
	}
	if r.opts.Demo {
		fmt.Fprintln(r.out)
		return
	}
	fmt.Fprintf(r.out, "\nTry, in another terminal:\n\n  export %s\n", strings.Join(append(r.variables(), fmt.Sprintf("HADRAIN_ADDR=%v", agent)), " "))
	fmt.Fprintf(r.out, "  %s drain canary --reason \"trying it out\" --yes\n", r.command)
	fmt.Fprintf(r.out, "  %s status\n", r.command)
	fmt.Fprintf(r.out, "  %s query %s %s   # asks at $HADRAIN_ADDR as HAProxy does; or --addr %v\n", r.command, inGroup(r.servers, canary)[0], canary, agent)
	fmt.Fprintf(r.out, "  %s clear canary --yes\n\nCtrl-C ends everything.\n\n", r.command)
}

// variables leads the commands of the CLI to this environment.
func (r *runner) variables() []string {
	variables := []string{"CONSUL_HTTP_ADDR=" + r.store.config().Shown(), "HADRAIN_RESPONDER=" + r.responder}
	// Also against one in the environment that names another root.
	if r.root != "hadrain" || os.Getenv("HADRAIN_KV_ROOT") != "" {
		variables = append(variables, "HADRAIN_KV_ROOT="+r.root)
	}
	return variables
}
