package render_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"hadrain/internal/render"
	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

// listRig is a rig whose list of templates changes while it runs.
type listRig struct {
	*rig
	dir     string
	list    atomic.Pointer[[]render.Template] // nil: it cannot be read
	signals chan os.Signal
	url     string
}

func newListRig(t *testing.T) *listRig {
	t.Helper()
	r := &listRig{rig: newRig(t), signals: make(chan os.Signal)}
	r.dir = filepath.Dir(r.cfg.State)
	r.url = r.serve()
	r.cfg.Reload = r.signals
	r.cfg.List = func() ([]render.Template, error) {
		if list := r.list.Load(); list != nil {
			return *list, nil
		}
		return nil, errors.New("templates.yml:3: no such thing")
	}
	return r
}

// made returns a template of one file by another, in the rig's directory.
func (r *listRig) made(destination, source, text string) render.Template {
	r.t.Helper()
	t := render.Template{Source: filepath.Join(r.dir, source), Destination: filepath.Join(r.dir, destination)}
	if err := os.WriteFile(t.Source, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
	return t
}

// relist reloads with another list; none: with one that cannot be read.
func (r *listRig) relist(list ...render.Template) {
	r.t.Helper()
	r.list.Store(&list)
	if list == nil {
		r.list.Store(nil)
	}
	r.reload(r.signals)
}

// wantMetric waits until a line of the metrics is there, or is not.
func (r *listRig) wantMetric(line string, there bool) {
	r.t.Helper()
	testpeer.WaitFor(r.t, line, func() (bool, string) {
		_, body := fetch(r.t, r.url+"/metrics")
		return strings.Contains(body, "\nhadrain_render_"+line) == there, body
	})
}

// staleOf is the series of a template, without its value.
func staleOf(t render.Template) string {
	return `template_stale{destination="` + t.Destination + `",template="` + t.Source + `"}`
}

func TestReloadList(t *testing.T) {
	r := newListRig(t)
	a, b := r.made("a", "a.tmpl", `a {{ desired "x" }}`), r.made("b", "b.tmpl", `b {{ desired "x" }}`)
	r.cfg.Templates = []render.Template{a}
	r.put("x", "drain")
	r.start()
	wantFile(t, a.Destination, "a drain")

	// Nothing changed in Consul, and what is new is made all the same.
	r.relist(a, b)
	wantFile(t, b.Destination, "b drain")
	if _, err := statefile.Lock(b.Destination); !errors.Is(err, statefile.ErrLocked) {
		t.Errorf("locking a file that was added: %v, want that it is locked", err)
	}

	// Without a list that can be read, the templates before are read again all the same.
	r.made("a", "a.tmpl", `A {{ desired "x" }}`)
	r.relist()
	r.wantLog("the list of templates before stays in use")
	r.wantLog("templates.yml:3: no such thing")
	r.wantMetric(`reloads_total{outcome="failed"} 1`, true)
	wantFile(t, a.Destination, "A drain")
	r.put("x", "maint")
	wantFile(t, a.Destination, "A maint")
	wantFile(t, b.Destination, "b maint")

	r.relist(b)
	r.wantLog("listed no more")
	r.put("x", "50%")
	wantFile(t, b.Destination, "b 50%")
	wantFile(t, a.Destination, "A maint")
	r.wantMetric(staleOf(a), false)
	if _, body := fetch(t, r.url+"/status.json"); strings.Contains(body, a.Destination) {
		t.Errorf("the status still shows %s:\n%s", a.Destination, body)
	}
	testpeer.WaitFor(t, "the lock of "+a.Destination, func() (bool, string) {
		release, err := statefile.Lock(a.Destination)
		if err != nil {
			return false, err.Error()
		}
		return release() == nil, ""
	})
	if err := r.halt(); err != nil {
		t.Error(err)
	}
}

// The template of a file may change its source and its command.
func TestReloadListChangesATemplate(t *testing.T) {
	r := newListRig(t)
	a, other := r.made("a", "a.tmpl", `a {{ desired "x" }}`), r.made("a", "other.tmpl", `other {{ desired "x" }}`)
	a.Command = "false"
	r.cfg.Templates = []render.Template{a}
	r.start()
	r.wantMetric(staleOf(a)+" 1", true)
	other.Command = "true"
	r.relist(other)
	wantFile(t, other.Destination, "other ready")
	r.wantMetric(staleOf(other)+" 0", true)
	r.wantMetric(staleOf(a), false)
}

// What is new and cannot be used is reported, and hinders nothing else.
func TestReloadListWithMistakes(t *testing.T) {
	r := newListRig(t)
	a, bad := r.made("a", "a.tmpl", `a {{ desired "x" }}`), r.made("bad", "bad.tmpl", "\n{{ nope }}")
	taken, again := r.made("taken", "taken.tmpl", "taken"), r.made("a", "again.tmpl", "again")
	r.cfg.Templates = []render.Template{a}
	r.start()
	wantFile(t, a.Destination, "a ready")
	release, err := statefile.Lock(taken.Destination)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = release() }()
	r.relist(a, bad, taken)
	r.wantLog("bad.tmpl:2:3: there is no function nope")
	r.wantLog("another process holds the lock")
	r.put("x", "drain")
	wantFile(t, a.Destination, "a drain")
	wantFile(t, bad.Destination, "")

	// One file of two templates is a mistake of the list.
	r.relist(again, a)
	r.wantLog("is written already")
	r.wantMetric(`reloads_total{outcome="failed"} 2`, true)
	r.put("x", "maint")
	wantFile(t, a.Destination, "a maint")
	r.wantMetric(staleOf(bad), false)
}

// A command that runs when its template is dropped still gives its verdict, and a
// template that is listed for the same file meanwhile waits for it.
func TestReloadListWaitsForTheVerdict(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("listed again: %t", again), func(t *testing.T) { waitForTheVerdict(t, again) })
	}
}

func waitForTheVerdict(t *testing.T, again bool) {
	r := newListRig(t)
	a, b := r.made("a", "a.tmpl", `a {{ desired "x" }}`), r.made("b", "b.tmpl", "b")
	fifo := filepath.Join(r.dir, "verdict")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	a.Command = "read verdict <" + fifo + "; exit $verdict"
	r.cfg.Templates = []render.Template{a}
	r.start()
	wantFile(t, a.Destination, "a ready")
	r.relist(b)
	wantFile(t, b.Destination, "b")
	wantFile(t, a.Destination, "a ready")
	if again {
		more := r.made("a", "more.tmpl", `more {{ desired "x" }}`)
		r.relist(more)
		r.wantLog(`msg="a template was added" template=` + more.Source)
		r.relist(b)
		r.wantLog(`its file stays" template=` + more.Source)
		r.relist(r.made("a", "again.tmpl", `again {{ desired "x" }}`))
		r.wantLog("again.tmpl")
	}
	if err := os.WriteFile(fifo, []byte("1\n"), 0); err != nil {
		t.Fatal(err)
	}
	if !again {
		wantFile(t, a.Destination, "") // put back: there was none
		return
	}
	wantFile(t, a.Destination, "again ready")
	if _, err := statefile.Lock(a.Destination); !errors.Is(err, statefile.ErrLocked) {
		t.Errorf("locking a file that is listed again: %v, want that it is locked", err)
	}
	if log := r.log.String(); strings.Contains(log, "another process") {
		t.Errorf("log:\n%s", log)
	}
}

// Two files of one source have metrics of their own: what one fails at is not
// hidden by the other.
func TestFilesOfOneSourceAreCountedApart(t *testing.T) {
	r := newListRig(t)
	good, bad := r.made("good", "same.tmpl", "x"), r.made("bad", "same.tmpl", "x")
	bad.Command = "false"
	r.cfg.Templates = []render.Template{bad, good}
	r.start()
	wantFile(t, good.Destination, "x")
	r.wantMetric(staleOf(bad)+" 1", true)
	r.wantMetric(staleOf(good)+" 0", true)
	r.relist(good)
	r.wantMetric(staleOf(bad), false)
	r.wantMetric(staleOf(good)+" 0", true)
}
