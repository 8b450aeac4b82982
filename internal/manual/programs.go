package manual

import (
	"fmt"

	"hadrain/internal/cli"
	"hadrain/internal/cmdline"
	"hadrain/internal/renderd"
	"hadrain/internal/responderd"
)

// Programs returns every program of Hadrain, as it is installed by a package.
func Programs() []Program {
	return []Program{
		{
			Command: cli.Command(), Section: 1,
			Environment: append(consul("once"),
				Entry{"HADRAIN_STATE", "The state file that completion takes the names of servers and groups from."},
				Entry{"SUDO_USER", "Who is doing this, without --as."}),
			Files: []Entry{{stateFile, "The state that this load balancer follows; completion reads it."}},
			Exit: []Entry{
				{"0", "Done, also if it was so already."},
				{fmt.Sprint(cmdline.ExitError), "An error, such as Consul not answering."},
				{fmt.Sprint(cmdline.ExitUsage), "Flags or arguments are wrong. Nothing was written."},
				{fmt.Sprint(cli.ExitRefused), "Refused by a guard: somebody else's drain, something that changed meanwhile, a question that was not answered with y, an id that load balancers would refuse. Nothing was written."},
			},
			SeeAlso: []string{"hadrain-render(8)", "hadrain-responder(8)", "haproxy(1)"},
		},
		{
			Command: renderd.Command(), Section: 8,
			Environment: append(consul("anew for each request"), notifySocket),
			Files: []Entry{
				{stateFile, "The state file. Its modification time is that of the last accepted read of Consul."},
				{"/var/lib/hadrain/.state.lock", "Held while the program runs, so that one writes."},
				{"/var/lib/hadrain/.state.tmp-*", "The next state file while it is written. What a crash left is removed at the start and before each write."},
				{".DEST.lock, .DEST.tmp-*", "The same beside DEST, the file of a template."},
				{".DEST.pending, .DEST.previous", "Beside DEST until its command has judged it: that it has not, and what is put back if it refuses. After a crash or a stop the command runs again at the next start. Not to be removed while the program runs."},
				settings,
			},
			Exit: append(daemonExit(),
				Entry{fmt.Sprint(cmdline.ExitLock), "Another process holds the lock of a file that this one is to write."}),
			SeeAlso: []string{"hadrain(1)", "hadrain-responder(8)", "systemd.service(5)"},
		},
		{
			Command: responderd.Command(), Section: 8,
			Environment: []Entry{
				{"LISTEN_FDS, LISTEN_FDNAMES, LISTEN_PID", "The sockets that systemd passes, see sd_listen_fds(3)."},
				notifySocket,
				{"WATCHDOG_USEC, WATCHDOG_PID", "How often systemd wants to hear that checks are accepted, see sd_watchdog_enabled(3)."},
			},
			Files: []Entry{
				{stateFile, "The state file. It is only read."},
				settings,
			},
			Exit:    daemonExit(),
			SeeAlso: []string{"hadrain(1)", "hadrain-render(8)", "haproxy(1)", "systemd.socket(5)"},
		},
	}
}

const stateFile = "/var/lib/hadrain/state"

var (
	settings     = Entry{"/etc/default/hadrain", "Variables for the systemd units of both daemons."}
	notifySocket = Entry{"NOTIFY_SOCKET", "Where systemd is told that the program is ready, and what it does, see sd_notify(3)."}
)

// consul are the variables of Consul's own tools; token says when the file of
// one is read.
func consul(token string) []Entry {
	return []Entry{
		{"CONSUL_HTTP_ADDR", "The address of Consul's HTTP API, if --consul-addr is not given. Default: localhost:8500; without a port it means 80, with https:// 443"},
		{"CONSUL_HTTP_TOKEN, CONSUL_HTTP_TOKEN_FILE", "The ACL token, or a file that it is read from " + token + "."},
		{"CONSUL_CACERT, CONSUL_CAPATH, CONSUL_CLIENT_CERT, CONSUL_CLIENT_KEY, CONSUL_TLS_SERVER_NAME, CONSUL_HTTP_SSL", "TLS to Consul, as Consul's own tools use them."},
		{"CONSUL_NAMESPACE, CONSUL_PARTITION", "Of Consul Enterprise."},
	}
}

func daemonExit() []Entry {
	return []Entry{
		{"0", "Ended by SIGTERM or SIGINT."},
		{fmt.Sprint(cmdline.ExitError), "A run-time error, said on standard error."},
		{fmt.Sprint(cmdline.ExitUsage), "Flags, variables or arguments are wrong."},
	}
}
