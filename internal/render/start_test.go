package render_test

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/kv"
	"hadrain/internal/render"
	"hadrain/internal/statefile"
)

func TestLossOfDataKeepsTheFile(t *testing.T) {
	r := newRig(t)
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	if _, err := r.client.KV().DeleteTree("hadrain/", nil); err != nil {
		t.Fatal(err)
	}
	r.wantLog("reason=no_sentinel")
	r.want("a drain")
	// Other data in its place, under another id.
	r.put(".hadrain", kv.FormatSentinel(idB))
	r.wantLog("reason=wrong_sentinel")
	r.want("a drain")
	// hadrain init --id.
	r.put(".hadrain", kv.FormatSentinel(idA))
	r.wantLog("accepted again")
	r.want()
}

func TestOtherIDIsAcceptedByRemovingTheFile(t *testing.T) {
	r := newRig(t)
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	r.put("a", "dran")
	r.put(".hadrain", kv.FormatSentinel(idB))
	r.wantLog("reason=wrong_sentinel")
	if err := os.Remove(r.cfg.State); err != nil {
		t.Fatal(err)
	}
	r.want("a hold rejected")
}

func TestOtherIDAtTheStart(t *testing.T) {
	r := newRig(t)
	r.start()
	r.want()
	if err := r.halt(); err != nil {
		t.Fatal(err)
	}
	r.put(".hadrain", kv.FormatSentinel(idB))
	r.cfg.StartTimeout = time.Second
	r.start()
	if err := r.wait(); err == nil || !strings.Contains(err.Error(), kv.WrongSentinel) || !strings.Contains(err.Error(), "remove the state file") {
		t.Errorf("Run() = %v, want %s and what to do", err, kv.WrongSentinel)
	}
	r.want()
}

func TestUnusableFileAtTheStart(t *testing.T) {
	r := newRig(t)
	if err := os.WriteFile(r.cfg.State, []byte("nonsense"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.put("a", "drain")
	r.start()
	r.want("a drain")
	r.wantLog("not usable")
}

func TestNobodyThereAtTheStart(t *testing.T) {
	r := newRig(t)
	r.cfg.Consul.Address = "unix:///nonexistent/consul.sock"
	r.cfg.StartTimeout = 100 * time.Millisecond
	r.start()
	if err := r.wait(); err == nil || !strings.Contains(err.Error(), r.cfg.Consul.Address) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("Run() = %v, want the address and the reason", err)
	}
}

func TestSecondRenderIsRefused(t *testing.T) {
	r := newRig(t)
	r.start()
	r.want()
	taken := errors.New("the port is taken") // by the first one, if all flags are the same
	r.cfg.Listen = func() (net.Listener, error) { return nil, taken }
	err := render.Run(t.Context(), r.cfg, slog.New(slog.DiscardHandler))
	if !errors.Is(err, statefile.ErrLocked) {
		t.Errorf("Run() on a file in use = %v, want ErrLocked", err)
	}
	r.cfg.State = filepath.Join(t.TempDir(), "state")
	out := r.template("x", "")
	if err := render.Run(t.Context(), r.cfg, slog.New(slog.DiscardHandler)); !errors.Is(err, taken) {
		t.Errorf("Run() on a port in use = %v, want %v", err, taken)
	}
	// Both locks are free again, also if one of the files is in use.
	busy, err := statefile.Lock(out)
	if err != nil {
		t.Fatalf("Lock() = %v, want that nobody holds it any more", err)
	}
	if err := render.Run(t.Context(), r.cfg, slog.New(slog.DiscardHandler)); !errors.Is(err, statefile.ErrLocked) || !strings.Contains(err.Error(), "source.tmpl") {
		t.Errorf("Run() on another's file = %v, want ErrLocked and the template", err)
	}
	if unlock, err := statefile.Lock(r.cfg.State); err != nil || unlock() != nil || busy() != nil {
		t.Errorf("Lock() = %v, want that nobody holds it any more", err)
	}
}
