package render

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
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

	program  *program
	log      *slog.Logger
	failures prometheus.Counter
	stale    prometheus.Gauge // 1 while the file is not what it should be

	failed string // error of the last attempt; "": none
	broken error  // why the source cannot be used, so that program is an older one

	offered atomic.Pointer[snapshot]
	renewed atomic.Pointer[renewal]
	wake    chan struct{} // level trigger for offered and renewed
	status  atomic.Pointer[statusjson.Template]
}

// A renewal is what came of reading the source again: a program or an error.
type renewal struct {
	program *program
	err     error
}

func newApplier(t Template, root string, log *slog.Logger, m *metrics) (*applier, error) {
	p, err := readProgram(t, root)
	if err != nil {
		return nil, err
	}
	a := &applier{
		Template: t, program: p, wake: make(chan struct{}, 1),
		log:      log.With("template", t.Source, "destination", t.Destination),
		failures: m.templateFailures.WithLabelValues(t.Source),
		stale:    m.templateStale.WithLabelValues(t.Source),
	}
	a.show(time.Time{})
	return a, nil
}

// offer makes s the state to apply next.
func (a *applier) offer(s *snapshot) {
	a.offered.Store(s)
	a.poke()
}

// renew makes r what to go on with.
func (a *applier) renew(r renewal) {
	a.renewed.Store(&r)
	a.poke()
}

func (a *applier) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// run applies what is offered until ctx ends.
func (a *applier) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.wake:
			if ctx.Err() != nil {
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
}

// take goes on with r. An error was logged by whoever read the source.
func (a *applier) take(r *renewal) {
	a.broken = r.err
	if r.err != nil {
		a.failures.Inc()
	} else {
		a.program = r.program
	}
	a.show(a.status.Load().Applied)
}

// report makes the end of an attempt known.
func (a *applier) report(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		return // stopped; the next start does it again
	}
	before, applied := a.failed, a.status.Load().Applied
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
	case err != nil && a.failed != before:
		a.log.Error("applying a template failed; trying again on the next change", "error", err)
	case err == nil && before != "":
		a.log.Info("the template is applied again")
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

// apply makes the destination say what the template makes of s, and runs the
// command if that is new, or if no command has yet judged what is there.
func (a *applier) apply(ctx context.Context, s *snapshot) error {
	current, err := os.ReadFile(a.Destination)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the file to replace: %w", err)
	}
	output, err := a.program.execute(s, string(current))
	if err != nil {
		return a.program.located(err)
	}
	undecided, err := exists(a.pending())
	if err != nil {
		return err
	}
	if there && !undecided && bytes.Equal(current, output) {
		return nil
	}
	if a.Command == "" {
		return statefile.Write(a.Destination, output)
	}
	if !undecided {
		if err := a.keep(current, there); err != nil {
			return err
		}
	}
	if err := statefile.Write(a.Destination, output); err != nil {
		return err
	}
	if err := runCommand(ctx, a.Command, cmp.Or(a.Timeout, DefaultCommandTimeout)); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return errors.Join(err, a.putBack())
	}
	return a.decide()
}
