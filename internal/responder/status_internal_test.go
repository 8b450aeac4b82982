package responder

import (
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hadrain/internal/agentcheck"
	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// /status.json is an interface: what it says about this state and these
// questions stands in testdata.
func TestStatusGolden(t *testing.T) {
	c := newClock()
	r := &responder{host: "lb-1", started: c.now(), store: newStore("/var/lib/hadrain/state", slog.New(slog.DiscardHandler)), rows: newRows(10)}
	golden(t, "status_unsynced.json", r, c)

	f := &statefile.File{
		Head: statefile.Head{Root: "hadrain", ID: "6f1c", Index: 4711, Rendered: c.now(), Host: "lb-1"},
		Rows: []desired.Row{
			{Key: "canary", State: desired.Drain, Note: `by=alice reason="chg-123"`},
			{Key: "elsewhere/web-01", State: desired.Maint},
			{Key: "web/web-07", State: desired.Hold, Rejected: `"dran": want ready, drain, maint, hold or N%; keeping hold`},
		},
		Skipped: []statefile.Skipped{{Key: "web/a b", Reason: "white space in the key"}},
	}
	r.store.swap(table(t, f))
	r.store.source.Store(&source{read: c.now(), problem: "reading state: cut short"})
	ask := func(line string) {
		a := r.answer([]byte(line))
		r.answered([]byte(line), a, c.now(), 10*time.Microsecond)
	}
	for range provenAfter {
		ask("web/web-07 canary")
	}
	for range 5 {
		c.pass(2 * time.Second)
		ask("web/gke-cny-web canary")
		ask("+up web/web-08")
	}
	golden(t, "status.json", r, c)
}

func golden(t *testing.T, name string, r *responder, c *clock) {
	t.Helper()
	doc := r.status(c.now())
	if doc.Version == "" {
		t.Error("no version")
	}
	doc.Version = "v1.2.3" // whatever the build says
	got, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s (go test -update rewrites it):\n%s", name, got)
	}
}

func TestCountsAreAHistogram(t *testing.T) {
	var c counts
	for _, d := range []time.Duration{0, 10 * time.Microsecond, 11 * time.Microsecond, time.Millisecond, time.Minute} {
		c.add(agentcheck.Drain, d)
	}
	count, sum, cumulative := c.histogram()
	if count != 5 || sum < 60.001 || sum > 60.002 {
		t.Errorf("count %d, sum %v, want 5 and a little over 60", count, sum)
	}
	for bound, want := range map[float64]uint64{10e-6: 2, 25e-6: 3, 1e-3: 4, 500e-3: 4} {
		if cumulative[bound] != want {
			t.Errorf("up to %v s: %d, want %d", bound, cumulative[bound], want)
		}
	}
}

// table is f as it is read from a file.
func table(t *testing.T, f *statefile.File) *statefile.Table {
	t.Helper()
	table, err := statefile.ParseTable(statefiletest.Format(f), nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}
