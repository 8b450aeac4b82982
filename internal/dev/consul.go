package dev

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/kv"
)

// consulGrace is how long a Consul may take to elect itself.
const consulGrace = 30 * time.Second

// findConsul returns the Consul to use: the one that CONSUL_HTTP_ADDR names if
// it answers, else one that the consul on the PATH becomes, with its data in dir.
func findConsul(ctx context.Context, dir string) (store, error) {
	var unreachable error
	if os.Getenv(consulapi.HTTPAddrEnvName) != "" {
		running := runningConsul{}
		if unreachable = running.start(ctx); unreachable == nil {
			return running, nil
		}
	}
	binary, err := exec.LookPath("consul")
	if err != nil {
		return nil, errors.Join(errors.New("no consul to use: CONSUL_HTTP_ADDR names none that answers, and there is none on the PATH"), unreachable)
	}
	if err := checkVariables(); err != nil {
		return nil, err
	}
	return newOwnConsul(binary, dir)
}

// runningConsul is a Consul that was there before.
type runningConsul struct{}

func (runningConsul) name() string      { return "the consul at " + kv.Config{}.Shown() }
func (s runningConsul) what() string    { return s.name() }
func (runningConsul) config() kv.Config { return kv.Config{} }
func (runningConsul) stop() error       { return errNotOurs }

func (s runningConsul) start(ctx context.Context) error {
	client, err := s.config().Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return answers(ctx, client)
}

// remove deletes the keys below root, which only this run used.
func (s runningConsul) remove(ctx context.Context, root string) error {
	client, err := s.config().Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := client.KV().DeleteTree(root+"/", new(consulapi.WriteOptions).WithContext(ctx)); err != nil {
		return fmt.Errorf("deleting %s/ in %s: %w", root, s.what(), err)
	}
	return nil
}

// ownConsul is a single server with its data on disk, so that it knows them
// again when it comes back.
type ownConsul struct {
	binary  string
	dir     string // data, configuration and log
	addr    string // of its HTTP API
	process *process
}

// newOwnConsul writes the configuration. Consul takes no inherited sockets, so
// its three ports are picked here and may be lost to somebody else before it
// binds them; the error of start then shows what it says.
func newOwnConsul(binary, dir string) (*ownConsul, error) {
	s := &ownConsul{binary: binary, dir: filepath.Join(dir, "consul")}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a place for consul: %w", err)
	}
	var ports [3]int
	for i := range ports {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		ports[i] = port
	}
	s.addr = fmt.Sprintf("127.0.0.1:%d", ports[0])
	// raft's multiplier of 1 makes the election after a restart quick.
	config := fmt.Sprintf(`node_name = "hadrain-dev"
server = true
bootstrap_expect = 1
data_dir = %q
bind_addr = "127.0.0.1"
client_addr = "127.0.0.1"
disable_update_check = true
performance { raft_multiplier = 1 }
ports { http = %d server = %d serf_lan = %d https = -1 dns = -1 grpc = -1 grpc_tls = -1 serf_wan = -1 }
`, filepath.Join(s.dir, "data"), ports[0], ports[1], ports[2])
	if err := os.WriteFile(filepath.Join(s.dir, "consul.hcl"), []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration of consul: %w", err)
	}
	return s, nil
}

func (s *ownConsul) name() string { return "its consul" }
func (s *ownConsul) what() string { return "a consul of its own (" + s.binary + ")" }

func (s *ownConsul) config() kv.Config {
	return kv.Config{Address: "http://" + s.addr, Token: kv.Anonymous}
}

// start returns when Consul has a leader and answers consistent reads.
func (s *ownConsul) start(ctx context.Context) error {
	if s.process != nil {
		return nil
	}
	client, err := s.config().Client()
	if err != nil {
		return err
	}
	cmd := exec.Command(s.binary, "agent", "-config-file", filepath.Join(s.dir, "consul.hcl"))
	p, err := startProcess("consul", cmd, filepath.Join(s.dir, "consul.log"))
	if err != nil {
		return err
	}
	s.process = p
	err = p.await(ctx, func(ctx context.Context) (string, bool) {
		if err := answers(ctx, client); err != nil {
			return err.Error(), false
		}
		return "consul answers", true
	}, consulGrace)
	if err != nil {
		return errors.Join(err, s.stop())
	}
	return nil
}

func (s *ownConsul) stop() error {
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	return p.stop()
}

func (s *ownConsul) remove(context.Context, string) error { return nil }

// answers returns nil if the store answers a consistent read, which needs a
// leader.
func answers(ctx context.Context, client *consulapi.Client) error {
	options := (&consulapi.QueryOptions{RequireConsistent: true}).WithContext(ctx)
	_, _, err := client.KV().Get("hadrain-dev/ping", options)
	return err
}

// freePort returns a port of the loopback device that is free for TCP and UDP
// now. It is below the range from which Linux takes the ports of outgoing
// connections, so that it stays free while the server is stopped.
func freePort() (int, error) {
	for range 100 {
		port := 10_000 + rand.IntN(22_000)
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		c, err := net.ListenPacket("udp", addr)
		_ = l.Close()
		if err != nil {
			continue
		}
		_ = c.Close()
		return port, nil
	}
	return 0, errors.New("found no free port in 100 attempts between 10000 and 32000")
}
