package render

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"hadrain/internal/statefile"
)

// A template that is listed no more is not applied again, whatever else its
// applier was told before it looked.
func TestDroppedIsNotApplied(t *testing.T) {
	dir := t.TempDir()
	listed := Template{Source: filepath.Join(dir, "source.tmpl"), Destination: filepath.Join(dir, "out")}
	if err := os.WriteFile(listed.Source, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 64 { // select picks at random
		a, err := newApplier(listed, "hadrain", slog.New(slog.DiscardHandler), newMetrics())
		if err != nil {
			t.Fatal(err)
		}
		a.offer(&snapshot{file: &statefile.File{}})
		close(a.dropped)
		if err := a.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(listed.Destination); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("it was applied: %v", err)
		}
	}
}
