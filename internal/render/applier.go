package render

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hadrain/internal/statefile"
	"hadrain/internal/statusjson"
)

// applier keeps the file of one further template. Its goroutine is its own, so
// that a command delays nothing else.
type applier struct {
	Template

	path     string // of the file: where Destination led at the start
	program  *program
	log      *slog.Logger
	metrics  *metrics
	failures prometheus.Counter
	stale    prometheus.Gauge // 1 while the file is not what it should be

	failed  string          // error of the last attempt; "": none
	disk    bool            // the error was of the disk: try again soon
	decided bool            // a verdict is in, but pending still stands
	endless <-chan struct{} // closed when an execution that took too long has ended; nil: none
	broken  error           // why the source cannot be used, so that program is an older one

	offered atomic.Pointer[snapshot]
	renewed atomic.Pointer[renewal]
	wake    chan struct{} // level trigger for offered and renewed
	status  atomic.Pointer[statusjson.Template]
	dropped chan struct{} // closed when the template is listed no more
	ended   chan struct{} // closed when run has returned, without the lock

	before <-chan struct{} // closed when nobody applies to the same file any more; nil: nobody does

	listed Template // as the loop gave it last, for the loop alone

	holder // of the destination's lock
}

// A renewal is what came of reading the list and the source again: another
// template for the same destination, or an error.
type renewal struct {
	Template

	program *program // nil: go on with the one before
	err     error
}

func newApplier(t Template, root string, log *slog.Logger, m *metrics) (*applier, error) {
	p, err := readProgram(t, root)
	if err != nil {
		return nil, err
	}
	path, err := statefile.Follow(t.Destination)
	if err == nil {
		err = statefile.CheckName(path)
	}
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", t.Source, err)
	}
	a := &applier{
		listed: t, path: path, metrics: m, log: log,
		wake: make(chan struct{}, 1), dropped: make(chan struct{}), ended: make(chan struct{}),
	}
	a.use(t, p)
	a.show(time.Time{})
	return a, nil
}

// use goes on with the template t, which p was made of.
func (a *applier) use(t Template, p *program) {
	if a.program == nil || a.program.text != p.text {
		a.endless = nil // of another text: this one gets its own try
	}
	a.Template, a.program = t, p
	a.failures = a.metrics.templateFailures.WithLabelValues(t.Source, t.Destination)
	a.stale = a.metrics.templateStale.WithLabelValues(t.Source, t.Destination)
}

// lock makes this process the only writer of the destination.
func (a *applier) lock() error { return a.lockOf(a.path) }

// offer makes s the state to apply next.
func (a *applier) offer(s *snapshot) {
	a.offered.Store(s)
	a.poke()
}

// renew makes r what to go on with. A program that was not taken yet is still
// better than the one before.
func (a *applier) renew(r renewal) {
	if waiting := a.renewed.Swap(nil); waiting != nil && r.program == nil {
		r.Template, r.program = waiting.Template, waiting.program
	}
	a.renewed.Store(&r)
	a.poke()
}

func (a *applier) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// run applies what is offered until ctx ends, or until the template is dropped
// and its command, if it runs, has given its verdict. It ends the lock.
func (a *applier) run(ctx context.Context) error {
	defer close(a.ended)
	defer func() { _ = a.unlock() }() // nothing was written to the lock file
	if a.before != nil {
		select {
		case <-ctx.Done():
			return nil
		case <-a.before:
		}
	}
	for {
		var again <-chan time.Time
		if a.disk {
			again = time.After(statefile.PollInterval)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.dropped:
			return nil
		case <-a.wake:
		case <-again:
		}
		if ctx.Err() != nil || !open(a.dropped) {
			return nil // both were ready: nothing is begun any more
		}
		if r := a.renewed.Swap(nil); r != nil {
			a.take(r)
		}
		if s := a.offered.Load(); s != nil {
			a.report(ctx, a.apply(ctx, s))
		}
	}
}

// take goes on with r. An error was logged by whoever read the source.
func (a *applier) take(r *renewal) {
	a.broken = r.err
	if r.program != nil {
		a.use(r.Template, r.program)
	}
	if r.err != nil {
		a.failures.Inc()
	}
	a.show(a.status.Load().Applied)
}

// report makes the end of an attempt known.
func (a *applier) report(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		return // stopped; the next start does it again
	}
	before, applied := a.failed, a.status.Load().Applied
	_, a.disk = errors.AsType[diskError](err)
	if err == nil {
		a.failed, applied = "", time.Now().UTC()
		a.stale.Set(0)
	} else {
		a.failed = err.Error()
		a.failures.Inc()
		a.stale.Set(1)
	}
	a.show(applied)
	switch {
	case err != nil && a.failed != before && a.disk:
		a.log.Error("applying a template failed; trying again each second", "template", a.Source, "destination", a.Destination, "error", err)
	case err != nil && a.failed != before:
		a.log.Error("applying a template failed; trying again on the next change", "template", a.Source, "destination", a.Destination, "error", err)
	case err == nil && before != "":
		a.log.Info("the template is applied again", "template", a.Source, "destination", a.Destination)
	}
}

// show publishes what is wrong, and when the template was last applied.
func (a *applier) show(applied time.Time) {
	status := &statusjson.Template{Source: a.Source, Destination: a.Destination, Applied: applied, Error: a.failed}
	if a.broken != nil {
		status.Error = strings.TrimPrefix(a.failed+"; "+a.broken.Error(), "; ")
	}
	a.status.Store(status)
}
