package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/haproxy"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
)

const (
	fleetSize = 1000
	fileFleet = "state-fleet"
)

// A fleet is what a real HAProxy with many servers saw, each asking every second.
type fleet struct {
	converged []time.Duration // from the new file to the last server in its state, one for each change
	checks    []time.Duration // durations of checks, as HAProxy measured them
	failed    map[string]bool // servers with a check that failed
}

// askFleet changes the state of all servers again and again. It returns nil
// without an HAProxy.
func (b *bench) askFleet(ctx context.Context) (f *fleet, err error) {
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		if binary, err = exec.LookPath("/usr/sbin/haproxy"); err != nil { // not on the PATH of plain users
			return nil, nil
		}
	}
	if err := b.writeFleet(desired.Ready, 1); err != nil {
		return nil, err
	}
	srv, err := b.start(ctx, variant{name: responder, argv: b.responder(fileFleet)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, srv.stop()) }()
	stop, err := b.startHAProxy(ctx, binary, srv.port)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()

	f = &fleet{failed: map[string]bool{}}
	end := time.Now().Add(time.Duration(b.long / 2 * float64(time.Second)))
	for index := uint64(2); index < 5 || time.Now().Before(end); index++ {
		state, admin := desired.Ready, haproxy.Admin(0)
		if index%2 == 0 {
			state, admin = desired.Drain, haproxy.FDRAIN
		}
		start := time.Now()
		if err := b.writeFleet(state, index); err != nil {
			return f, err
		}
		if err := b.awaitFleet(ctx, admin); err != nil {
			return f, err
		}
		f.converged = append(f.converged, time.Since(start))
		if err := b.look(ctx, f); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (b *bench) writeFleet(state desired.State, index uint64) error {
	return statefile.Write(b.path(fileFleet), statefiletest.Format(&statefile.File{
		Head: statefile.Head{Root: "hadrain", ID: "bench", Index: index, Rendered: time.Now().UTC(), Host: "bench"},
		Rows: []desired.Row{{Key: "canary", State: state}},
	}))
}

func (b *bench) socket() string { return b.path("haproxy.sock") }

func (b *bench) startHAProxy(ctx context.Context, binary string, port int) (stop func() error, err error) {
	var config, said strings.Builder
	fmt.Fprintf(&config, "global\n stats socket %s mode 600 level admin\ndefaults\n mode http\n timeout connect 1s\n timeout client 5s\n timeout server 5s\nbackend web\n", b.socket())
	for i := range fleetSize {
		fmt.Fprintf(&config, " server server-%05d 127.0.0.1:1 weight 100 agent-check agent-inter 1s agent-addr 127.0.0.1 agent-port %d agent-send \"%s canary\\n\"\n", i, port, key(i))
	}
	if err := os.WriteFile(b.path("haproxy.cfg"), []byte(config.String()), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, "-db", "-f", b.path("haproxy.cfg"))
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // killed: its status says nothing
		return err
	}
	err = await(ctx, func() error {
		conn, err := net.Dial("unix", b.socket())
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, stop(), errors.New(said.String()))
	}
	return stop, b.awaitFleet(ctx, 0)
}

// awaitFleet waits until all servers were asked and are in the given state.
func (b *bench) awaitFleet(ctx context.Context, admin haproxy.Admin) error {
	return await(ctx, func() error {
		servers, err := haproxy.ServersState(ctx, b.socket())
		if err != nil {
			return err
		}
		for _, s := range servers {
			if s.Admin != admin {
				return fmt.Errorf("%s is %v, not %v", s.Server, s.Admin, admin)
			}
		}
		return nil
	})
}

// look takes what HAProxy says of the last check of each server.
func (b *bench) look(ctx context.Context, f *fleet) error {
	stats, err := haproxy.Stats(ctx, b.socket())
	if err != nil {
		return err
	}
	for _, s := range stats {
		if s.Kind != haproxy.StatServer || s.AgentStatus == "INI" {
			continue
		}
		if s.AgentStatus != "CHECKED" {
			f.failed[s.Name+": "+s.AgentStatus] = true
		} else if !s.AgentRunning {
			f.checks = append(f.checks, s.AgentDuration)
		}
	}
	return nil
}

func (f *fleet) goals() []goal {
	return []goal{
		{"1,000 servers of a real HAProxy asking each second: the last to follow, p99, s", quantile(f.converged, 0.99).Seconds(), 1.2, "%.2f"},
		{"the same: p99 of a check, as HAProxy measures it, ms", quantile(f.checks, 0.99).Seconds() * 1000, 10, "%.0f"},
		{"the same: servers with a failed check", float64(len(f.failed)), 0, "%.0f"},
	}
}

func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[int(q*float64(len(all)-1))]
}

// await asks until there is no error, for at most 20 s.
func await(ctx context.Context, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
