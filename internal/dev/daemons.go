package dev

import (
	"context"
	"fmt"
	"net"
	"time"

	"hadrain/internal/render"
	"hadrain/internal/responder"
)

// readyGrace is how long render and responder may take to be ready.
const readyGrace = 15 * time.Second

// startDaemons marks the prefix, then starts render and responder on the store, in this process. It
// returns where the responder takes agent checks, once both have the state.
func (r *runner) startDaemons(ctx context.Context) (*net.TCPAddr, error) {
	if err := r.init(ctx); err != nil {
		return nil, err
	}
	if err := r.startRender(ctx); err != nil {
		return nil, fmt.Errorf("starting render: %w", err)
	}
	agent, err := r.startResponder(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting responder: %w", err)
	}
	return agent, nil
}

func (r *runner) startRender(ctx context.Context) error {
	l, err := listenLoopback("")
	if err != nil {
		return err
	}
	r.render = "http://" + l.Addr().String()
	cfg := render.Config{
		Consul: r.store.config(), Root: r.root, State: r.statePath, Listen: func() (net.Listener, error) { return l, nil },
		StartTimeout: render.DefaultStartTimeout, Quiet: render.DefaultQuiet,
		MaxKeys: render.DefaultMaxKeys,
	}
	cfg.Consul.MaxBytes = render.DefaultMaxBytes
	r.group.Go(func() error { return render.Run(ctx, cfg, r.logger.With("program", "render")) })
	_, err = await(ctx, func(ctx context.Context) (string, bool) {
		doc, err := r.renderStatus(ctx)
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("render is not synced: %+v", doc.Refused), doc.Synced
	}, readyGrace)
	return err
}

func (r *runner) startResponder(ctx context.Context) (*net.TCPAddr, error) {
	agent, err := listenLoopback("")
	if err != nil {
		return nil, err
	}
	l, err := listenLoopback("")
	if err != nil {
		_ = agent.Close()
		return nil, err
	}
	addr := agent.Addr().(*net.TCPAddr)
	r.responder = "http://" + l.Addr().String()
	cfg := responder.Config{State: r.statePath, Agent: []net.Listener{agent}, HTTP: []net.Listener{l}}
	r.group.Go(func() error { return responder.Run(ctx, cfg, r.logger.With("program", "responder")) })
	_, err = await(ctx, func(ctx context.Context) (string, bool) {
		doc, err := r.responderStatus(ctx)
		if err != nil {
			return err.Error(), false
		}
		return "responder has no state: " + doc.State.Error, doc.State.Loaded
	}, readyGrace)
	return addr, err
}
