package responder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"hadrain/internal/agentcheck"
	"hadrain/internal/desired"
	"hadrain/internal/httpserve"
)

// A responder is one running daemon.
type responder struct {
	form    desired.Form
	host    string
	started time.Time
	store   *store
	rows    *rows
	agent   *agentcheck.Server
	counts  counts
}

// Run serves until ctx ends, lets questions and requests in flight finish, and
// returns nil. It answers "unsynced" while there is no state file. An error
// means that it could not start, or that a listener broke.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	r, err := newResponder(cfg, log)
	if err != nil {
		return err
	}
	n := newNotifier(cfg, r.agent, func() string { return r.summary(time.Now()) })
	r.store.look() // before the first answer
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.agent.Serve(ctx) })
	for _, l := range cfg.HTTP {
		handler := r.handler(time.Now)
		group.Go(func() error { return httpserve.Serve(ctx, l, handler, cfg.WebConfig, log) })
	}
	group.Go(func() error { r.store.follow(ctx, cfg.Reload, n.reloading, n.ready); return nil })
	group.Go(func() error { n.run(ctx); return nil })
	log.Info("answering agent checks", "listeners", addresses(cfg.Agent), "http", addresses(cfg.HTTP), "state", cfg.State)
	n.ready()
	err = group.Wait()
	log.Info("stopped", "cause", context.Cause(ctx))
	return err
}

func newResponder(cfg Config, log *slog.Logger) (*responder, error) {
	if len(cfg.Agent) == 0 {
		return nil, errors.New("starting the responder: no listener for agent checks")
	}
	if err := httpserve.Check(cfg.WebConfig); err != nil {
		return nil, err
	}
	r := &responder{
		form:    cfg.Form,
		host:    hostname(),
		started: time.Now().UTC().Truncate(time.Second),
		store:   newStore(cfg.State, log),
		rows:    newRows(orDefault(cfg.MaxRows, DefaultMaxRows)),
	}
	most, err := connections(orDefault(cfg.MaxConnections, DefaultMaxConnections), log)
	if err != nil {
		return nil, err
	}
	r.agent, err = agentcheck.New(agentcheck.Config{
		Answer: r.answer, Answered: r.answered, MaxConnections: most, Log: log,
	}, cfg.Agent...)
	return r, err
}

// answer is on the path of every check: it must neither allocate nor wait.
func (r *responder) answer(line []byte) agentcheck.Answer {
	current := r.store.current.Load()
	if current == nil {
		return agentcheck.Respond(line, r.form, nil)
	}
	a := agentcheck.Respond(line, r.form, current.Lookup)
	a.Index = current.Index
	return a
}

// answered is, too.
func (r *responder) answered(line []byte, a agentcheck.Answer, at time.Time, took time.Duration) {
	r.counts.add(a.Kind, took)
	r.rows.note(line, a, at)
}

// ready reports why the responder is of no use yet.
func (r *responder) ready() error {
	if r.store.current.Load() == nil {
		return fmt.Errorf("no state loaded from %s yet", r.store.path)
	}
	return nil
}

func orDefault(n, normal int) int {
	if n <= 0 {
		return normal
	}
	return n
}

// reserved is how many descriptors are kept for everything but agent checks.
const reserved = 64

// connections lowers most to what the limit of descriptors leaves room for.
func connections(most int, log *slog.Logger) (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("reading the limit of open files: %w", err)
	}
	if limit.Cur >= uint64(most)+reserved {
		return most, nil
	}
	fit := max(int(limit.Cur)-reserved, 1)
	log.Warn("fewer connections than asked for; raise LimitNOFILE", "max_connections", fit, "asked_for", most, "limit", limit.Cur)
	return fit, nil
}

func addresses(listeners []net.Listener) []string {
	all := make([]string, 0, len(listeners))
	for _, l := range listeners {
		all = append(all, l.Addr().String())
	}
	return all
}
