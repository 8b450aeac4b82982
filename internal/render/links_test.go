package render_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hadrain/internal/render"
	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

// link makes a link to path in a directory of its own.
func link(t *testing.T, path string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// Lock and temporary files are beside the real file, whatever it is called.
func TestStateThroughALink(t *testing.T) {
	r := newRig(t)
	path := r.cfg.State
	left := filepath.Join(filepath.Dir(path), ".state.tmp-1")
	if err := os.WriteFile(left, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.cfg.State = link(t, path) // which is not there yet
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what an earlier run left is still there: %v", err)
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(r.cfg.State), ".*"))
	if err != nil || len(names) > 0 {
		t.Errorf("beside the link: %q, %v, want nothing", names, err)
	}
	if info, err := os.Lstat(r.cfg.State); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link is now %v, %v", info, err)
	}

	other := r.cfg
	other.State = path
	if err := render.Run(t.Context(), other, slog.New(slog.DiscardHandler)); !errors.Is(err, statefile.ErrLocked) {
		t.Errorf("a second render by the file's own name: %v, want that it is locked", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r.wantLog("the state file was removed by somebody else")
	r.want("a drain")
}

// Two names of one file are one file: at the start, and at a reload.
func TestCheckFollowsLinks(t *testing.T) {
	r := newListRig(t)
	a, b := r.made("a", "a.tmpl", "a"), r.made("b", "b.tmpl", "b")
	to := func(destination string) render.Template {
		return render.Template{Source: a.Source, Destination: destination}
	}
	state := link(t, r.cfg.State)
	for name, tc := range map[string]struct {
		list []render.Template
		want string
	}{
		"the state":         {[]render.Template{to(state)}, r.cfg.State + " is written already"},
		"its directory":     {[]render.Template{to(filepath.Join(link(t, r.dir), "state"))}, r.cfg.State + " is written already"},
		"another's":         {[]render.Template{to(link(t, b.Destination)), b}, b.Destination + " is written already"},
		"a template":        {[]render.Template{to(link(t, b.Source)), b}, b.Source + " is a template itself"},
		"by its other name": {[]render.Template{{Source: link(t, a.Source), Destination: a.Source}}, a.Source + " is a template itself"},
	} {
		cfg := r.cfg
		cfg.Templates = tc.list
		if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: Check() = %v, want %q", name, err, tc.want)
		}
	}

	file := r.cfg.State
	r.cfg.State, r.cfg.Templates = state, []render.Template{b}
	r.start()
	wantFile(t, b.Destination, "b")
	// The link leads elsewhere; what render writes stays the file that it was.
	if err := errors.Join(os.Remove(state), os.Symlink("elsewhere", state)); err != nil {
		t.Fatal(err)
	}
	r.relist(to(file))
	r.wantLog(file + " is written already")
	r.relist(to(link(t, b.Destination)))
	wantFile(t, b.Destination, "a")
	testpeer.WaitFor(t, "the state", func() (bool, string) {
		f, _, err := statefile.Load(file)
		return err == nil && len(f.Rows) == 0, r.log.String()
	})
}

// A destination's link that leads elsewhere is followed at a reload: to another
// file, but never to what is a template.
func TestReloadFollowsLinksAnew(t *testing.T) {
	r := newRig(t)
	signals := make(chan os.Signal)
	r.cfg.Reload = signals
	out := r.template(`{{ desired "a" }}`, "")
	source := r.cfg.Templates[0].Source
	name := link(t, out)
	r.cfg.Templates[0].Destination = name
	point := func(to string) {
		t.Helper()
		if err := errors.Join(os.Remove(name), os.Symlink(to, name)); err != nil {
			t.Fatal(err)
		}
		r.reload(signals)
	}
	r.start()
	wantFile(t, out, "ready")
	point(source)
	r.wantLog("reloading: the templates before stay in use")
	r.wantLog(source + " is a template itself")
	r.put("a", "drain")
	wantFile(t, out, "drain")
	wantFile(t, source, `{{ desired "a" }}`)

	// Nothing changed in Consul, and what is new is made all the same.
	point(out + "-2")
	wantFile(t, out+"-2", "drain")
	r.put("a", "maint")
	wantFile(t, out+"-2", "maint")
	wantFile(t, out, "drain")
}
