// Command benchresponder measures what one agent check costs hadrain-responder,
// beside the least it could cost (an epoll server in C), the plain way in Go (a
// goroutine and a net.Conn for each check), and the way without any code of
// ours: systemd's Accept=yes with a shell that greps the state file.
//
// The variants run one after the other in random order, round by round, and
// each figure is the median over the rounds of its ratio to the floor in the
// same round: absolute times drift with whatever else the machine does. It
// needs cc, and systemd-socket-activate for the shell.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == plainVerb {
		fmt.Fprintln(os.Stderr, plain(os.Args[2]))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "benchresponder:", err)
		stop()
		os.Exit(1)
	}
}

// A bench is one run of everything.
type bench struct {
	dir     string // of the built programs and the state files
	rounds  int
	seconds float64 // of each measurement
	out     io.Writer
	results map[string]map[string][]sample // by load and variant, one a round
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	b := &bench{out: out, results: map[string]map[string][]sample{}}
	flags := flag.NewFlagSet("benchresponder", flag.ContinueOnError)
	flags.IntVar(&b.rounds, "rounds", 5, "rounds")
	flags.Float64Var(&b.seconds, "seconds", 3, "length of each measurement")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "hadrain-bench-"); err != nil {
		return err
	}
	defer func() {
		if e := os.RemoveAll(b.dir); err == nil {
			err = e
		}
	}()
	if err := b.build(ctx); err != nil {
		return err
	}
	for round := range b.rounds {
		if err := b.round(ctx, round); err != nil {
			return err
		}
	}
	return b.print()
}

// A load is how checks arrive.
type load struct {
	name   string
	rate   int // checks a second; 0: a closed loop
	flight int // connections at most
}

var loads = []load{
	{"5000/s", 5000, 8000},
	{"500/s", 500, 8000},
	{"closed loop of 16", 0, 16},
}

func (b *bench) round(ctx context.Context, round int) error {
	for _, l := range loads {
		order := variants(b)
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, v := range order {
			if v.slow && l.rate != 0 {
				continue // it cannot keep up: only the closed loop says something
			}
			if _, err := fmt.Fprintf(os.Stderr, "\rround %d of %d: %-20s %-20s", round+1, b.rounds, l.name, v.name); err != nil {
				return err
			}
			s, err := b.measure(ctx, v, l)
			if err != nil {
				return fmt.Errorf("measuring %s at %s: %w", v.name, l.name, err)
			}
			if b.results[l.name] == nil {
				b.results[l.name] = map[string][]sample{}
			}
			b.results[l.name][v.name] = append(b.results[l.name][v.name], s)
		}
	}
	_, err := fmt.Fprintln(os.Stderr)
	return err
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }
