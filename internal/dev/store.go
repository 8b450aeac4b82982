package dev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"hadrain/internal/devstore"
	"hadrain/internal/kv"
)

// store is where the desired state lives: the embedded one, a Consul that dev
// started, or a Consul that was there before.
type store interface {
	// name says which of them it is, for people.
	name() string
	// what is its name with what there is to know of it.
	what() string
	// config says how to reach it.
	config() kv.Config
	// start makes it answer; also again, after stop, with the data it had.
	start(ctx context.Context) error
	// stop makes it unreachable. Stopping a stopped store does nothing.
	stop() error
	// remove takes away what it leaves behind besides the temporary directory.
	remove(ctx context.Context, root string) error
}

// errNotOurs is the answer to stopping a Consul that dev did not start.
var errNotOurs = errors.New("this consul was running before and is left alone")

// foreignVariables would make clients talk past a store of our own, which has
// neither TLS nor namespaces.
var foreignVariables = []string{"CONSUL_HTTP_SSL", "CONSUL_NAMESPACE", "CONSUL_PARTITION"}

// checkVariables refuses an environment in which the commands that dev prints
// would not reach its store.
func checkVariables() error {
	for _, name := range foreignVariables {
		if value := os.Getenv(name); value != "" {
			return fmt.Errorf("variable %s=%s is for another consul than the store of hadrain dev: run it with env -u %s", name, value, name)
		}
	}
	return nil
}

// embedded serves package devstore on a port of its own.
type embedded struct {
	data   *devstore.Store
	addr   string // as it is listened on; of port 0 only before the first start
	server *http.Server
	served chan error // the end of server, while it runs
}

func newEmbedded() *embedded {
	return &embedded{data: devstore.New(), addr: "127.0.0.1:0"}
}

func (s *embedded) name() string { return "the embedded store" }
func (s *embedded) what() string { return s.name() + " (in memory; --consul for a real Consul)" }

func (s *embedded) config() kv.Config {
	// The token of another Consul in the environment is not for this one.
	return kv.Config{Address: "http://" + s.addr, Token: kv.Anonymous}
}

func (s *embedded) start(context.Context) error {
	if s.server != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("starting the embedded store: %w", err)
	}
	s.addr = l.Addr().String()
	s.server = &http.Server{Handler: s.data, ReadHeaderTimeout: 5 * time.Second}
	s.served = make(chan error, 1)
	go func(server *http.Server, served chan<- error) { served <- server.Serve(l) }(s.server, s.served)
	return nil
}

func (s *embedded) stop() error {
	if s.server == nil {
		return nil
	}
	err := s.server.Close() // cuts open connections, as the end of a process would
	if end := <-s.served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	s.server = nil
	if err != nil {
		return fmt.Errorf("stopping the embedded store: %w", err)
	}
	return nil
}

func (s *embedded) remove(context.Context, string) error {
	s.data.Close()
	return nil
}
