package main

import (
	"context"
	_ "embed" // the C programs
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
)

//go:embed c/floor.c
var floorC string

//go:embed c/load.c
var loadC string

// The names of variants. Those that reload have their whole file replaced every
// second, and their metrics read now and then.
const (
	floor      = "C, the floor"
	responder  = "hadrain-responder"
	reload10k  = "  reloading 10,000 keys"
	reload100k = "  reloading 100,000 keys"
	goroutines = "Go, a goroutine each"
	shells     = "a shell each"
	units      = "systemd, a unit and a shell each"
)

// A variant is one way to answer.
type variant struct {
	name   string
	argv   []string // "PORT" and "HTTP" stand for ports
	reload string   // state file that is replaced every second, if any
}

func (b *bench) variant(name string) variant {
	v := variant{name: name}
	switch name {
	case floor:
		v.argv = []string{b.path("floor"), "PORT"}
	case goroutines:
		v.argv = []string{"/proc/self/exe", serveGoroutines, "PORT"}
	case shells:
		v.argv = b.shells()
	case responder:
		v.argv = b.responder(file10k)
	case reload10k:
		v.argv, v.reload = b.responder(file10k), file10k
	case reload100k:
		v.argv, v.reload = b.responder(file100k), file100k
	}
	return v
}

// shells starts a shell for each connection. That is the least of what a unit
// with Accept=yes costs, see [systemd].
func (b *bench) shells() []string {
	tool, err := exec.LookPath("systemd-socket-activate")
	if err != nil {
		return []string{"/proc/self/exe", serveShells, "PORT", b.path(file10k)}
	}
	return []string{tool, "--accept", "--inetd", "-l", "127.0.0.1:PORT", "/bin/sh", "-c", shell, b.path(file10k)}
}

func (b *bench) responder(state string) []string {
	return []string{b.path("responder"), "--state", b.path(state), "--listen", "127.0.0.1:PORT", "--http.listen", "127.0.0.1:HTTP"}
}

// State files, and how many keys are asked for: what one load balancer has of a
// large fleet.
const (
	file10k  = "state-10k"
	file100k = "state-100k"
	asked    = 1000
)

var sizes = map[string]int{file10k: 10_000, file100k: 100_000}

// build makes the programs and the files.
func (b *bench) build(ctx context.Context) error {
	err := errors.Join(
		b.compile(ctx, "floor", floorC),
		b.compile(ctx, "load", loadC),
	)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", b.path("responder"), "hadrain/cmd/responder")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the responder: %w\n%s", err, out)
	}
	for name, keys := range sizes {
		if err := statefile.Write(b.path(name), stateOf(keys, 1)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) compile(ctx context.Context, name, text string) error {
	cmd := exec.CommandContext(ctx, "cc", "-O2", "-x", "c", "-o", b.path(name), "-")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling %s.c: %w\n%s", name, err, out)
	}
	return nil
}

// key returns the row key of a server; load.c asks for the same.
func key(server int) string { return fmt.Sprintf("web/server-%05d", server) }

// stateOf makes a state file with so many keys in several states. With an even
// index a tenth of them differ from those with an odd one.
func stateOf(keys int, index uint64) []byte {
	f := &statefile.File{Head: statefile.Head{Root: "hadrain", ID: "bench", Index: index, Rendered: time.Now().UTC(), Host: "bench"}}
	for i := range keys {
		row := desired.Row{Key: key(i), State: desired.State(i % 3)}
		if i%10 == 0 {
			row.State = desired.State(index % 2)
			row.Note = "by=bench at=2026-01-02T15:04:05Z reason=" + strconv.Quote("index "+strconv.FormatUint(index, 10))
		}
		f.Rows = append(f.Rows, row)
	}
	slices.SortFunc(f.Rows, func(a, b desired.Row) int { return strings.Compare(a.Key, b.Key) })
	return statefiletest.Format(f)
}
