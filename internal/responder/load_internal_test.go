package responder

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"hadrain/internal/agentcheck"
	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
)

// BenchmarkLook takes over a file with 100,000 keys, which happens beside the
// checks: one of which a tenth of the lines changed, with the same keys or with
// one more; and the first one.
func BenchmarkLook(b *testing.B) {
	for _, c := range []struct {
		name  string
		first bool
		keys  [2]int
	}{{"changed", false, [2]int{100_000, 100_000}}, {"added", false, [2]int{99_999, 100_000}}, {"first", true, [2]int{100_000, 100_000}}} {
		b.Run(c.name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "state")
			files := [2][]byte{stateOf(c.keys[0], 0), stateOf(c.keys[1], 1)}
			s := newStore(path, slog.New(slog.DiscardHandler))
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				if err := statefile.Write(path, files[n%2]); err != nil {
					b.Fatal(err)
				}
				if c.first {
					s.reader = statefile.NewReader(path)
				}
				b.StartTimer()
				s.look()
			}
			if s.loads.Load() < uint64(b.N) {
				b.Fatalf("%d of %d files loaded", s.loads.Load(), b.N)
			}
		})
	}
}

// stateOf makes a state file. A tenth of its lines are those of one index only.
func stateOf(keys int, index uint64) []byte {
	f := &statefile.File{Head: statefile.Head{Root: "hadrain", ID: "6f1c", Index: index, Host: "lb-1", Rendered: time.Unix(1_800_000_000, 0).UTC()}}
	for i := range keys {
		row := desired.Row{Key: fmt.Sprintf("web/server-%06d", i), State: desired.State(i % 3)}
		if i%10 == 0 {
			row.Note = fmt.Sprintf(`by=bench at=2026-01-02T15:04:05Z reason="index %d"`, index)
		}
		f.Rows = append(f.Rows, row)
	}
	return statefiletest.Format(f)
}

func TestAnswerAllocatesNothing(t *testing.T) {
	r := &responder{store: newStore("state", slog.New(slog.DiscardHandler))}
	r.store.swap(table(t, &statefile.File{Rows: []desired.Row{{Key: "canary", State: desired.Drain}}}))
	line := []byte("web/a canary")
	if a := r.answer(line); a.Kind != agentcheck.Drain {
		t.Fatalf("answered %+v", a)
	}
	if n := testing.AllocsPerRun(100, func() { r.answer(line) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
