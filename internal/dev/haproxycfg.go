package dev

import (
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Descriptors under which HAProxy finds the sockets that dev opened for it. An
// inherited socket needs no free port to be guessed, and it stays open through
// every reload.
const (
	frontendFD = 3
	statsFD    = 4
)

// haproxyConfig is what goes into the haproxy.cfg of dev.
type haproxyConfig struct {
	socket    string       // path of the runtime socket
	agent     *net.TCPAddr // where the responder listens
	servers   []webServer
	frontend  string // addresses, for people who read the file
	statsPage string
}

const configHead = `# Made by "hadrain dev"; gone when it ends.
global
    stats socket %s mode 600 level admin
    # The first agent check of all servers within 50 ms after a reload, instead
    # of spread over agent-inter: until then a server takes traffic.
    max-spread-checks 50ms
    # Old workers end even if a client never closes.
    hard-stop-after 10s

defaults
    mode http
    timeout connect 2s
    timeout client  30s
    timeout server  30s
    retries 3
    option redispatch

# http://%s/
frontend site
    bind fd@%d
    use_backend api if { path_beg /api/ }
    default_backend web

# http://%s/
frontend stats
    bind fd@%d
    stats enable
    stats uri /
    stats refresh 2s
`

// write writes the configuration file. Every server line is enrolled as the
// documentation tells: weight 100 (with the default of 1, every weight below
// 100 % would be 0), the row key first, double quotes around agent-send.
func (c haproxyConfig) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, configHead, c.socket, c.frontend, frontendFD, c.statsPage, statsFD)
	backend := ""
	for _, s := range c.servers {
		if s.backend != backend {
			backend = s.backend
			fmt.Fprintf(&b, "\nbackend %s\n    balance roundrobin\n", backend)
		}
		fmt.Fprintf(&b, "    server %s %s weight 100 check inter 1s slowstart %s"+
			" agent-check agent-addr %s agent-port %d agent-inter %s agent-send \"%s\\n\"\n",
			s.name, s.listener.Addr(), haproxyTime(slowstart), c.agent.IP, c.agent.Port, haproxyTime(agentInter), s.question())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const (
	// slowstart is how long HAProxy ramps up a server that comes back.
	slowstart = 3 * time.Second
	// agentInter is how often HAProxy asks the responder about each server.
	agentInter = time.Second
)

// haproxyTime writes d as HAProxy reads it.
func haproxyTime(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
