package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"hadrain/internal/kv"
	"hadrain/internal/statefile"
)

// Options says what to run.
type Options struct {
	// Consul uses a real Consul instead of the embedded store: the one that
	// CONSUL_HTTP_ADDR names if it answers, else one started from the consul on
	// the PATH.
	Consul bool
	// Demo plays a story of about a quarter of a minute and ends.
	Demo bool
	// Frontend is where HAProxy listens for requests, HOST:PORT. If empty, a
	// free port of 127.0.0.1.
	Frontend string
	// Program is how the user calls hadrain, for the commands that are printed.
	// If empty, "hadrain".
	Program string
}

// errTold ends everything after the story; it is no failure.
var errTold = errors.New("the demonstration is over")

// Run starts the environment, tells on out how to use it, and shows it until
// ctx ends, or plays the demonstration. When it returns, everything it started
// has ended and is removed. Without an HAProxy on the machine the rest runs,
// but there is no demonstration.
//
// The end of ctx is the normal end, nil, except in the middle of a
// demonstration. Below it consul-template logs each read to the standard logger
// of package log, which is for main to silence.
func Run(ctx context.Context, opts Options, out io.Writer) (err error) {
	d, err := newDirectory()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.remove()) }()
	dir := d.path
	logFile, err := os.OpenFile(filepath.Join(dir, "hadrain.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer logFile.Close()

	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	r := &runner{
		environment: environment{
			servers: site(), root: "hadrain", statePath: filepath.Join(dir, "state"), log: logFile.Name(),
			command: opts.Program, client: &http.Client{Transport: transport},
		},
		opts: opts, dir: dir, out: out,
		logger: slog.New(slog.NewTextHandler(logFile, nil)),
	}
	if r.command == "" {
		r.command = "hadrain"
	}
	sweep(r.logger)
	return r.run(ctx)
}

// runner starts what runs, in order.
type runner struct {
	environment
	opts   Options
	dir    string // temporary directory
	out    io.Writer
	logger *slog.Logger
	kv     *kv.Store // the CLI's side of store
	group  *errgroup.Group
}

// run ends when the first part ends, and when all have ended.
func (r *runner) run(ctx context.Context) error {
	if err := r.openStore(ctx); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	r.group = group
	group.Go(func() error { return r.main(groupCtx) })
	err := group.Wait()
	switch {
	case errors.Is(err, errTold):
		err = nil
	case ctx.Err() != nil && !r.opts.Demo:
		err = nil // asked to end; a part may have been cut off while starting
	}
	// The store outlives the others: they would report its end.
	return errors.Join(err, r.closeStore())
}

func (r *runner) openStore(ctx context.Context) error {
	if !r.opts.Consul {
		if err := checkVariables(); err != nil {
			return err
		}
		r.store = newEmbedded()
	} else {
		s, err := findConsul(ctx, r.dir)
		if err != nil {
			return err
		}
		r.store = s
		if _, running := s.(runningConsul); running {
			// Its hadrain/ may be what a fleet follows.
			r.root = filepath.Base(r.dir)
		}
	}
	if err := r.store.start(ctx); err != nil {
		return errors.Join(err, r.closeStore())
	}
	return nil
}

func (r *runner) closeStore() error {
	// Not under the context of Run, which has ended.
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	err := r.store.stop()
	if errors.Is(err, errNotOurs) {
		err = nil
	}
	return errors.Join(err, r.store.remove(ctx, r.root))
}

// main starts the parts one after the other, then shows them.
func (r *runner) main(ctx context.Context) error {
	agent, err := r.startDaemons(ctx)
	if err != nil {
		return err
	}
	webs, err := listenWeb(r.servers)
	if err != nil {
		return err
	}
	r.group.Go(func() error { return serveWeb(ctx, webs) })
	binary, err := findHAProxy()
	switch {
	case err == nil:
		if err := r.startHAProxy(ctx, binary, agent, webs); err != nil {
			return err
		}
	case r.opts.Demo:
		return fmt.Errorf("no demonstration without traffic: %w; on Debian or Ubuntu: sudo apt-get install haproxy", err)
	}
	r.welcome(agent)
	if r.opts.Demo {
		s := story{environment: &r.environment, out: r.out, write: r.write}
		if err := s.play(ctx); err != nil {
			return err
		}
		return errTold
	}
	v := view{servers: r.servers, state: statefile.NewReader(r.statePath), traffic: r.traffic}
	if r.haproxy != nil {
		v.socket = r.haproxy.socket
	}
	return v.run(ctx, r.out)
}

// startHAProxy starts HAProxy in front of the web servers, and the client.
func (r *runner) startHAProxy(ctx context.Context, binary string, agent *net.TCPAddr, webs []webServer) error {
	frontend, err := listenLoopback(r.opts.Frontend)
	if err != nil {
		return fmt.Errorf("front end: %w", err)
	}
	stats, err := listenLoopback("")
	if err != nil {
		return errors.Join(err, frontend.Close())
	}
	h, err := startHAProxy(ctx, binary, r.dir, haproxyConfig{agent: agent, servers: webs}, frontend, stats)
	if err != nil {
		return err
	}
	r.haproxy = h
	r.frontend, r.statsPage = "http://"+frontend.Addr().String(), "http://"+stats.Addr().String()
	r.traffic = newTraffic(r.frontend)
	r.group.Go(func() error { return h.run(ctx) })
	r.group.Go(func() error { return r.traffic.run(ctx) })
	return nil
}

// listenLoopback listens on addr, or on a free port of 127.0.0.1 if it is empty.
func listenLoopback(addr string) (*net.TCPListener, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}
