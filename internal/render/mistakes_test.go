package render_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/render"
)

// A command ends well although a daemon that it started keeps its standard
// error open: the file stays.
func TestCommandThatStartsADaemon(t *testing.T) {
	r := newRig(t)
	dir := filepath.Dir(r.cfg.State)
	out := r.template(`{{ desired "a" }}`, "tail -f --pid=$PPID /dev/null &") // until this test has ended
	r.put("a", "drain")
	r.start()
	left := filepath.Join(dir, ".out.pending")
	wantFile(t, out, "drain")
	wantFile(t, left, "")
	wantFile(t, out, "drain")
	if log := r.log.String(); strings.Contains(log, "failed") {
		t.Errorf("log:\n%s", log)
	}
}

// A name without room for those of temporary files is an error at the start, and
// at a reload.
func TestLongName(t *testing.T) {
	r := newListRig(t)
	long := r.made(strings.Repeat("n", 221), "a.tmpl", "x")
	cfg := r.cfg
	cfg.Templates = []render.Template{long}
	if err := render.Run(t.Context(), cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), long.Destination+": the name has 221 bytes") {
		t.Errorf("Run() = %v, want that the name is too long", err)
	}
	r.start()
	r.want()
	most := r.made(strings.Repeat("n", 220), "a.tmpl", "x")
	most.Command = "true"
	r.relist(long, most)
	r.wantLog("the name has 221 bytes")
	wantFile(t, most.Destination, "x")
}

// A state file that can never be is an error at the start.
func TestStateIsNoFile(t *testing.T) {
	r := newRig(t)
	if err := os.Mkdir(r.cfg.State, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := render.Run(t.Context(), r.cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), r.cfg.State+": not a regular file") {
		t.Errorf("Run() = %v, want that %s is no file", err, r.cfg.State)
	}
}

// What would destroy a template, or blind render for hours, is refused.
func TestCheck(t *testing.T) {
	a := func(source, destination string) render.Template {
		return render.Template{Source: source, Destination: destination}
	}
	for name, tc := range map[string]struct {
		change func(c *render.Config)
		want   string
	}{
		"over itself":       {func(c *render.Config) { c.Templates = []render.Template{a("/x/t", "/x/./t")} }, "/x/t is a template itself"},
		"over another":      {func(c *render.Config) { c.Templates = []render.Template{a("/x/t", "/x/u"), a("/x/v", "/x/t")} }, "/x/t is a template itself"},
		"over the state":    {func(c *render.Config) { c.Templates = []render.Template{a("/x/t", c.State)} }, "is written already"},
		"twice":             {func(c *render.Config) { c.Templates = []render.Template{a("/x/t", "/x/o"), a("/x/u", "/x/y/../o")} }, "/x/o is written already"},
		"no time-out":       {func(c *render.Config) { c.Templates = []render.Template{{Source: "s", Destination: "d", Timeout: -1}} }, "time-out"},
		"never quiet":       {func(c *render.Config) { c.Quiet = 0 }, "quiet time 0s: want 10ms to 1m0s"},
		"quiet for a day":   {func(c *render.Config) { c.Quiet = 24 * time.Hour }, "quiet time 24h0m0s: want 10ms to 1m0s"},
		"fewer than 0 keys": {func(c *render.Config) { c.MaxKeys = -1 }, "most keys -1"},
		"no time to start":  {func(c *render.Config) { c.StartTimeout = 0 }, "start timeout 0s"},
		"nothing to do":     {func(c *render.Config) { c.State = "" }, "nothing to do"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			tc.change(&r.cfg)
			if err := r.cfg.Check(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Check() = %v, want %q", err, tc.want)
			}
		})
	}
}
