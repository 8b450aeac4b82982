package testpeer

import (
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// consulPorts are the ports that Consul cannot do without. It takes no
// inherited sockets, so they are picked at run time and may be lost to
// somebody else before Consul binds them.
type consulPorts struct{ server, serf, http, https int }

func pickConsulPorts(t testing.TB) consulPorts {
	t.Helper()
	return consulPorts{server: pickPort(t), serf: pickPort(t), http: pickPort(t), https: pickPort(t)}
}

// pickPort returns a port of 127.0.0.1 that is free for TCP and UDP now. It is
// below the range from which Linux takes the ports of outgoing connections and
// of listeners on port 0 (32768 and up), so that only a deliberate bind takes
// it away, also while a server is stopped.
func pickPort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 10_000 + rand.IntN(22_000)
		if portFree(port) {
			return port
		}
	}
	t.Fatal("found no free port in 100 attempts between 10000 and 32000")
	return 0
}

func portFree(port int) bool {
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	defer l.Close()
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	defer c.Close()
	return true
}

// baseHCL returns the configuration that every server starts from. raft's
// multiplier of 1 is what Consul recommends for production; the default of 5
// makes elections slow.
func (s *ConsulServer) baseHCL() string {
	var b strings.Builder
	httpPort, httpAddr, httpsPort := s.ports.http, "unix://"+s.socket(), -1
	if s.cfg.TCP {
		httpAddr = "127.0.0.1"
	}
	if s.cfg.HTTPS {
		httpsPort = s.ports.https
	}
	fmt.Fprintf(&b, `node_name = %q
bind_addr = "127.0.0.1"
log_level = "info"
disable_update_check = true
connect { enabled = false }
performance { raft_multiplier = 1 }
addresses { http = %q }
ports { server = %d serf_lan = %d http = %d https = %d dns = -1 grpc = -1 grpc_tls = -1 serf_wan = -1 }
`, s.name, httpAddr, s.ports.server, s.ports.serf, httpPort, httpsPort)
	if s.peers > 0 || s.client {
		fmt.Fprintf(&b, "data_dir = %q\n", filepath.Join(s.dir, "data"))
	}
	if s.peers > 0 {
		fmt.Fprintf(&b, "server = true\nbootstrap_expect = %d\n", s.peers)
	}
	if len(s.join) > 0 {
		fmt.Fprintf(&b, "retry_interval = \"1s\"\nretry_join = [\"%s\"]\n", strings.Join(s.join, `", "`))
	}
	return b.String()
}
