package dev

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"hadrain/internal/desired"
	"hadrain/internal/haproxy"
	"hadrain/internal/statefile"
)

const (
	redrawEvery = 500 * time.Millisecond // on a terminal
	printEvery  = 5 * time.Second        // elsewhere
	pageWidth   = 85                     // columns; in a narrower terminal lines would wrap
)

// view shows a line for each server: what is desired, what HAProxy says, and
// the traffic it gets.
type view struct {
	servers []server
	state   *statefile.Reader
	socket  string   // HAProxy's; "" without HAProxy
	traffic *traffic // nil without HAProxy

	file *statefile.Table // last good one; nil before
	read time.Time        // last accepted read of the store
}

// line is one server in the view.
type line struct {
	key     string
	desired string // "drain (canary)": the state and, in brackets, the group key it comes from
	live    *haproxy.Stat
	rate    int
}

// page is one picture of everything.
type page struct {
	at     time.Time
	age    string // of the last accepted read, as a clause
	lines  []line
	counts *counts // nil without HAProxy
	err    error   // why HAProxy could not be read
}

// look takes a picture.
func (v *view) look(ctx context.Context) page {
	p := page{at: time.Now(), age: "nothing read yet"}
	if f, read, err := v.state.Look(); err == nil {
		v.read = read
		if f != nil {
			v.file = f
		}
	}
	if !v.read.IsZero() {
		p.age = "last confirmed " + p.at.Sub(v.read).Truncate(100*time.Millisecond).String() + " ago"
	}
	live := map[string]haproxy.Stat{}
	if v.socket != "" {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		var rows []haproxy.Stat
		rows, p.err = haproxy.Stats(ctx, v.socket)
		for _, s := range rows {
			live[s.Key()] = s
		}
	}
	if v.traffic != nil {
		p.counts = v.traffic.counts()
	}
	for _, s := range v.servers {
		l := line{key: s.key(), desired: v.desired(s)}
		if stat, ok := live[s.key()]; ok {
			l.live = &stat
		}
		if p.counts != nil {
			l.rate = p.counts.rate[s.key()]
		}
		p.lines = append(p.lines, l)
	}
	return p
}

// desired returns the state of a server as the responder resolves it.
func (v *view) desired(s server) string {
	if v.file == nil {
		return "unsynced"
	}
	state, key := desired.Resolve(strings.Fields(s.question()), func(key string) (desired.State, bool) {
		for row := range v.file.Rows() {
			if row.Key == key {
				return row.State, true
			}
		}
		return desired.Ready, false
	})
	if key == "" || key == s.key() {
		return state.String()
	}
	return state.String() + " (" + key + ")"
}

// write prints the picture; paint colours a word by what it means.
func (p page) write(w io.Writer, paint func(string) string) {
	fmt.Fprintf(w, "%s  %s", p.at.Format(time.TimeOnly), p.age)
	if p.counts != nil {
		fmt.Fprintf(w, "  requests: %d answered, %d failed", p.counts.answers, p.counts.failed)
	}
	fmt.Fprintln(w)
	const columns = "%-16s  %-16s  %s  %6s  %8s  %10s\n"
	fmt.Fprintf(w, columns, "SERVER", "DESIRED", pad("HAPROXY", 15), "WEIGHT", "SESSIONS", "REQUESTS/S")
	for _, l := range p.lines {
		status, weight, sessions, rate := "-", "-", "-", "-"
		if l.live != nil {
			status = l.live.Status
			weight, sessions = fmt.Sprint(l.live.Weight), fmt.Sprint(l.live.Sessions)
			rate = fmt.Sprint(l.rate)
			if l.live.Throttle < 100 {
				status += fmt.Sprintf(" slow %d%%", l.live.Throttle)
			}
		}
		fmt.Fprintf(w, columns, l.key, l.desired, paint(pad(status, 15)), weight, sessions, rate)
	}
	if p.err != nil {
		fmt.Fprintf(w, "%.*s\n", pageWidth, "haproxy does not answer: "+p.err.Error())
	}
}

// pad pads before colours come in: they have no width.
func pad(s string, width int) string { return fmt.Sprintf("%-*s", width, s) }

// run prints pictures until ctx ends: in place on a terminal, one below the
// other elsewhere.
func (v *view) run(ctx context.Context, w io.Writer) error {
	terminal := canRedraw(w)
	paint := func(s string) string { return s }
	every := printEvery
	if terminal {
		every = redrawEvery
		if os.Getenv("NO_COLOR") == "" {
			paint = colour
		}
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	height := 0
	for {
		var b strings.Builder
		v.look(ctx).write(&b, paint)
		text := b.String()
		if ctx.Err() != nil {
			return nil // the picture would show our own end
		}
		var err error
		if terminal {
			_, err = fmt.Fprint(w, rewind(height), strings.ReplaceAll(text, "\n", "\x1b[K\n"), "\x1b[J")
			height = strings.Count(text, "\n")
		} else {
			_, err = fmt.Fprintln(w, text)
		}
		if err != nil {
			return fmt.Errorf("showing what runs: %w", err) // nobody is left who looks
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// rewind moves the cursor up over the last picture (ECMA-48, CPL).
func rewind(lines int) string {
	if lines == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dF", lines)
}

// colour paints a status: green takes traffic, yellow is leaving or coming
// back, red is out.
func colour(status string) string {
	code := 0
	switch word, _, _ := strings.Cut(strings.TrimSpace(status), " "); word {
	case "UP":
		code = 32
		if strings.Contains(status, "slow") {
			code = 33
		}
	case "DRAIN", "NOLB":
		code = 33
	case "MAINT", "DOWN":
		code = 31
	default:
		return status
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", code, status)
}

// canRedraw reports whether w is a terminal in which a picture can replace the
// last one.
func canRedraw(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return err == nil && width >= pageWidth
}
