package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// A bench is one run of everything.
type bench struct {
	dir     string // of the built programs and the state files
	rounds  int
	seconds float64 // of each measurement
	long    float64 // seconds of the long run; that with HAProxy is half as long
	out     io.Writer

	results map[string]map[string][]sample // by load and variant, one a round
	soaked  sample                         // the long run
	stalled sample
	fleet   *fleet   // nil without HAProxy
	systemd *systemd // nil without one
}

// A load is how checks arrive.
type load struct {
	name     string
	rate     int // checks a second; 0: a closed loop
	flight   int // connections at most
	variants []string
}

// The names of loads.
const (
	busy   = "5,000 checks a second"
	calm   = "500 checks a second"
	closed = "16 in flight, closed loop"
)

var loads = []load{
	{busy, 5000, 8000, []string{floor, responder, reload10k, reload100k, goroutines}},
	{calm, 500, 8000, []string{floor, responder, reload100k, goroutines}},
	// A shell each cannot keep up with a rate: only here it says something.
	{closed, 0, 16, []string{floor, responder, reload100k, goroutines, shells, units}},
}

func (b *bench) measureAll(ctx context.Context) error {
	if err := loopbackUp(); err != nil {
		return err
	}
	for round := range b.rounds {
		if err := b.round(ctx, round); err != nil {
			return err
		}
	}
	if err := b.table(); err != nil {
		return err
	}
	b.progress("a long run, %.0f s", b.long)
	var err error
	if b.soaked, err = b.soak(ctx); err != nil {
		return fmt.Errorf("measuring a long run: %w", err)
	}
	b.progress("a stall")
	if b.stalled, err = b.stall(ctx); err != nil {
		return fmt.Errorf("measuring a stall: %w", err)
	}
	b.progress("a real HAProxy with %d servers, %.0f s", fleetSize, b.long/2)
	if b.fleet, err = b.askFleet(ctx); err != nil {
		return fmt.Errorf("measuring with HAProxy: %w", err)
	}
	return nil
}

// round measures each variant under each load once.
func (b *bench) round(ctx context.Context, round int) error {
	for _, l := range loads {
		if b.results[l.name] == nil {
			b.results[l.name] = map[string][]sample{}
		}
		for _, i := range rand.Perm(len(l.variants)) {
			name := l.variants[i]
			if name == units && b.systemd == nil {
				continue
			}
			b.progress("round %d of %d: %s, %s", round+1, b.rounds, l.name, name)
			s, err := b.measure(ctx, b.variant(name), l, b.seconds, nil)
			if err != nil {
				return fmt.Errorf("measuring %s at %s: %w", name, l.name, err)
			}
			b.results[l.name][name] = append(b.results[l.name][name], s)
		}
	}
	return nil
}

// progress says what goes on. Nobody minds if that fails.
func (b *bench) progress(format string, args ...any) {
	fmt.Fprintln(os.Stderr, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }
