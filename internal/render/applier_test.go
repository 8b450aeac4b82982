package render_test

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	"hadrain/internal/render"
	"hadrain/internal/statefile"
)

// What is no file, or a huge one, is reported: it neither blocks nor fills the
// memory.
func TestDestinationIsNoFile(t *testing.T) {
	r := newRig(t)
	out := r.template(`{{ desired "a" }}`, "")
	if err := syscall.Mkfifo(out, 0o600); err != nil {
		t.Fatal(err)
	}
	r.put("a", "drain")
	r.start()
	r.wantLog(out + ": not a regular file (p")
	r.put("a", "maint")
	r.want("a maint")
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(out, statefile.MaxSize+1); err != nil { // it takes no space
		t.Fatal(err)
	}
	r.put("a", "50%")
	r.wantLog(out + ": larger than")
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	r.put("a", "drain")
	wantFile(t, out, "drain")
	if err := r.halt(); err != nil {
		t.Error(err)
	}
}

func TestSourceIsNoFile(t *testing.T) {
	r := newRig(t)
	r.template("x", "")
	source := r.cfg.Templates[0].Source
	if err := errors.Join(os.Remove(source), syscall.Mkfifo(source, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := render.Run(t.Context(), r.cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), source+": not a regular file") {
		t.Errorf("Run() = %v, want that %s is no file", err, source)
	}
}
