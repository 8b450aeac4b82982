package render

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	ctemplate "github.com/hashicorp/consul-template/template"
	"golang.org/x/sync/errgroup"

	"hadrain/internal/httpserve"
	"hadrain/internal/kv"
	"hadrain/internal/statefile"
)

// Run keeps the state file as Consul wants it until ctx ends; then it returns
// nil and leaves the file. It returns an error if another process writes the
// file ([statefile.ErrLocked]), if no read was accepted within the start
// timeout, or if HTTP cannot be served.
func Run(ctx context.Context, cfg Config, log *slog.Logger) (err error) {
	l, err := newLoop(cfg, log)
	if err != nil {
		return err
	}
	client, reconnect, err := cfg.Consul.Reloadable()
	if err != nil {
		return err
	}
	l.reconnect = reconnect
	defer func() { err = errors.Join(err, l.unlock()) }()
	if err := l.lock(); err != nil {
		return err
	}
	var listener net.Listener
	if cfg.Listen != nil {
		if listener, err = cfg.Listen(); err != nil {
			return err
		}
	}
	l.load()
	group, ctx := errgroup.WithContext(ctx)
	l.watch = kv.NewWatch(ctx, kv.WatchConfig{
		Root: cfg.Root, Address: cfg.Consul.Shown(), List: cfg.Consul.Lister(client, cfg.Root),
		Quiet: cfg.Quiet, MaxKeys: cfg.MaxKeys, ID: l.id(), Observe: l.metrics.observe,
	})
	l.renderer.watched = l.watch.Dependency()
	group.Go(l.watch.Run)
	l.spawn = func(a *applier) { group.Go(func() error { return a.run(ctx) }) }
	group.Go(func() error { return l.run(ctx) })
	for _, a := range l.templates() {
		l.spawn(a)
	}
	if listener != nil {
		group.Go(func() error { return l.serve(ctx, listener) })
	}
	err = group.Wait()
	l.cfg.Notify("STOPPING=1")
	return err
}

func newLoop(cfg Config, log *slog.Logger) (*loop, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Host == "" {
		host, err := hostName()
		if err != nil {
			return nil, err
		}
		cfg.Host = host
	}
	if cfg.Ready == nil {
		cfg.Ready = func() {}
	}
	if cfg.Notify == nil {
		cfg.Notify = func(string) {}
	}
	l := &loop{cfg: cfg, log: log, metrics: newMetrics()}
	l.renderer = renderer{root: cfg.Root, host: cfg.Host, brain: ctemplate.NewBrain()}
	if cfg.State != "" {
		path, err := statefile.Target(cfg.State)
		if err != nil {
			return nil, fmt.Errorf("state file: %w", err)
		}
		l.out = &output{path: path}
	}
	var appliers []*applier
	for _, t := range cfg.Templates {
		a, err := newApplier(t, cfg.Root, log, l.metrics)
		if err != nil {
			return nil, err
		}
		appliers = append(appliers, a)
	}
	l.appliers.Store(&appliers)
	l.status.Store(newStatus(&cfg, cfg.Host))
	return l, nil
}

// lock makes this process the only writer of all its files. After an error it may
// be that of some.
func (l *loop) lock() error {
	if l.out != nil {
		if err := l.out.lock(); err != nil {
			return err
		}
		l.sweep(l.out.path)
	}
	for _, a := range l.templates() {
		if err := l.lockOf(a); err != nil {
			return err
		}
	}
	return nil
}

// lockOf makes this process the only writer of a file of a template.
func (l *loop) lockOf(a *applier) error {
	if err := a.lock(); err != nil {
		return fmt.Errorf("template %s: %w", a.Source, err)
	}
	l.sweep(a.path)
	return nil
}

// unlock ends what lock did. No applier must run any more.
func (l *loop) unlock() (err error) {
	if l.out != nil {
		err = l.out.unlock()
	}
	for _, a := range l.templates() {
		err = errors.Join(err, a.unlock())
	}
	return err
}

// templates returns the appliers as they are listed now.
func (l *loop) templates() []*applier { return *l.appliers.Load() }

func (l *loop) sweep(path string) {
	if err := statefile.Sweep(path); err != nil {
		l.log.Warn("temporary files of an earlier run stay", "error", err)
	}
}

// load takes over the state file that is there.
func (l *loop) load() {
	if l.out == nil {
		return
	}
	file, at, err := l.out.load()
	switch {
	case err != nil:
		// Nothing in it can be believed: neither the id to compare the
		// sentinel's with, nor what rejected values should keep.
		l.log.Error("the state file on disk is not usable, starting without it", "error", err)
	case file != nil:
		l.log.Info("found a state", "state", l.out.path, "keys", len(file.Rows), "index", file.Index, "id", file.ID, "last_accepted_read", at.UTC())
		l.file, l.accepted = file, at
	}
}

// id returns the id that the sentinel must have: that of the file on disk.
func (l *loop) id() string {
	if l.file == nil {
		return ""
	}
	return l.file.ID
}

func (l *loop) serve(ctx context.Context, listener net.Listener) error {
	handler := httpserve.Handler(httpserve.Config{
		Metrics: l.metrics.registry,
		Ready:   l.ready,
		Status:  func() any { return l.document() },
		Page:    http.HandlerFunc(l.servePage),
	})
	if err := httpserve.Serve(ctx, listener, handler, l.cfg.WebConfig, l.log); err != nil {
		return fmt.Errorf("serving HTTP: %w", err)
	}
	return nil
}
