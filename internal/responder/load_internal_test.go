package responder

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
)

// BenchmarkLook reads a file with 100,000 keys, which happens beside the checks.
func BenchmarkLook(b *testing.B) {
	path := filepath.Join(b.TempDir(), "state")
	f := &statefile.File{Head: statefile.Head{Root: "hadrain", ID: "6f1c", Index: 1, Host: "lb-1", Rendered: time.Unix(1_800_000_000, 0).UTC()}}
	for i := range 100_000 {
		f.Rows = append(f.Rows, desired.Row{Key: fmt.Sprintf("web/server-%06d", i), State: desired.Drain})
	}
	if err := os.WriteFile(path, statefiletest.Format(f), 0o644); err != nil {
		b.Fatal(err)
	}
	s := newStore(path, slog.New(slog.DiscardHandler))
	b.ReportAllocs()
	for b.Loop() {
		s.reader = statefile.NewReader(path)
		s.look()
	}
	if s.current.Load() == nil {
		b.Fatal("not loaded")
	}
}
