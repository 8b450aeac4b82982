package testpeer

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	consulapi "github.com/hashicorp/consul/api"
)

// ConsulConfig says which Consul to start. The zero value is a single server
// in development mode: fast, and a restart forgets everything.
type ConsulConfig struct {
	Persistent bool   // keep the data in a directory, so that Start after Stop or Kill finds it again
	TCP        bool   // HTTP on a TCP port instead of a unix socket
	HTTPS      bool   // also HTTPS on a TCP port, see HTTPSAddr; HCL names its certificates
	HCL        string // more configuration, such as an acl block; it wins over what this package writes
	Token      string // what Client sends; empty: no token
}

// A ConsulServer is a Consul agent in server mode, or in client mode: see [ConsulAgent].
type ConsulServer struct {
	cfg    ConsulConfig
	binary string
	dir    string
	name   string
	peers  int  // servers to expect; 0: development mode
	client bool // an agent in client mode
	join   []string
	ports  consulPorts
	proc   *Process // the last one started
	served bool     // its address has been given out, so its ports stay
}

// Consul starts a server and waits until it has a leader and answers
// consistent reads. It skips the test where no Consul is installed.
func Consul(t testing.TB, cfg ConsulConfig) *ConsulServer {
	t.Helper()
	s := newConsul(t, cfg, "n1")
	if cfg.Persistent {
		s.peers = 1
	}
	s.Start(t)
	return s
}

// ConsulCluster starts n persistent servers that elect one leader among them,
// and waits until all of them answer consistent reads.
func ConsulCluster(t testing.TB, n int, cfg ConsulConfig) []*ConsulServer {
	t.Helper()
	cfg.Persistent = true
	servers := make([]*ConsulServer, n)
	var lan []string
	for i := range servers {
		servers[i] = newConsul(t, cfg, fmt.Sprintf("n%d", i+1))
		lan = append(lan, fmt.Sprintf("127.0.0.1:%d", servers[i].ports.serf))
	}
	for _, s := range servers {
		s.peers, s.join = n, lan
		s.launch(t)
	}
	for _, s := range servers {
		if err := s.awaitReady(t); err != nil {
			t.Fatalf("waiting for Consul %s of a cluster of %d: %v", s.name, n, err)
		}
	}
	return servers
}

// ConsulAgent starts an agent in client mode, as it runs on machines that are no
// Consul servers: it forwards all requests to server, and waits until it does.
func ConsulAgent(t testing.TB, server *ConsulServer, cfg ConsulConfig) *ConsulServer {
	t.Helper()
	s := newConsul(t, cfg, "agent")
	s.client, s.join = true, []string{fmt.Sprintf("127.0.0.1:%d", server.ports.serf)}
	s.Start(t)
	return s
}

func newConsul(t testing.TB, cfg ConsulConfig, name string) *ConsulServer {
	t.Helper()
	s := &ConsulServer{cfg: cfg, binary: Need(t, "consul"), dir: Dir(t), name: name}
	s.ports = pickConsulPorts(t)
	return s
}

// Addr returns the HTTP address as CONSUL_HTTP_ADDR takes it: a "unix://" or
// "http://" URL. It stays the same over restarts.
func (s *ConsulServer) Addr() string {
	if s.cfg.TCP {
		return fmt.Sprintf("http://127.0.0.1:%d", s.ports.http)
	}
	return "unix://" + s.socket()
}

// HTTPSAddr returns the address of a server with HTTPS.
func (s *ConsulServer) HTTPSAddr() string { return fmt.Sprintf("https://127.0.0.1:%d", s.ports.https) }

func (s *ConsulServer) socket() string { return filepath.Join(s.dir, "http.sock") }

// Client returns a client that sends the configured token.
func (s *ConsulServer) Client(t testing.TB) *consulapi.Client {
	t.Helper()
	// No consulapi.DefaultConfig: it reads CONSUL_* from the environment.
	client, err := consulapi.NewClient(&consulapi.Config{
		Address:   s.Addr(),
		Token:     s.cfg.Token,
		Transport: &http.Transport{DisableKeepAlives: true},
	})
	if err != nil {
		t.Fatalf("making a Consul client for %s: %v", s.Addr(), err)
	}
	return client
}

// Start starts the server, at first or after Stop or Kill, and waits until it
// answers consistent reads.
func (s *ConsulServer) Start(t testing.TB) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		s.launch(t)
		err := s.awaitReady(t)
		if err == nil {
			s.served = true
			return
		}
		// Nobody can hold a port between the moment it is found free and the
		// moment that Consul binds it.
		taken := strings.Contains(s.Output(), "address already in use")
		if !taken || s.served || attempt == 5 {
			t.Fatalf("waiting for Consul to get a leader: %v\n%s", err, s.Output())
		}
		s.proc.Kill(t)
		s.ports = pickConsulPorts(t)
	}
}

func (s *ConsulServer) launch(t testing.TB) {
	t.Helper()
	args := []string{"agent"}
	if s.peers == 0 && !s.client {
		args = append(args, "-dev")
	}
	for file, text := range map[string]string{"0-base.hcl": s.baseHCL(), "1-test.hcl": s.cfg.HCL} {
		path := filepath.Join(s.dir, file)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatalf("writing Consul's configuration: %v", err)
		}
	}
	args = append(args, "-config-dir="+s.dir) // reads only *.hcl and *.json, in order
	s.proc = Start(t, exec.Command(s.binary, args...))
}

// awaitReady waits until the server can answer a consistent read: only then has
// the leader replayed its log and applied its own settings.
func (s *ConsulServer) awaitReady(t testing.TB) error {
	t.Helper()
	kv := s.Client(t).KV()
	var exited error
	err := poll(t, func() (bool, string) {
		if s.proc.exited() {
			exited = fmt.Errorf("consul exited: %v", s.proc.cmd.ProcessState)
			return true, ""
		}
		_, _, err := kv.Get("testpeer/ready", &consulapi.QueryOptions{RequireConsistent: true})
		var status consulapi.StatusError
		if errors.As(err, &status) && status.Code == http.StatusForbidden && s.cfg.Token == "" {
			return true, "" // it answers; that this client may not read is the test's choice
		}
		return err == nil, fmt.Sprint(err)
	})
	return errors.Join(err, exited)
}

// Output returns what the server has logged since it was last started.
func (s *ConsulServer) Output() string { return s.proc.Output() }

// Stop ends the server by SIGTERM and waits for it.
func (s *ConsulServer) Stop(t testing.TB) { t.Helper(); s.proc.Stop(t) }

// Kill ends the server by SIGKILL and waits for it.
func (s *ConsulServer) Kill(t testing.TB) { t.Helper(); s.proc.Kill(t) }

// Pause stops the server by SIGSTOP: connections to it hang until Resume.
func (s *ConsulServer) Pause(t testing.TB) { t.Helper(); s.proc.Pause(t) }

// Resume ends a Pause.
func (s *ConsulServer) Resume() { s.proc.Resume() }
