package render_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hadrain/internal/render"
	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

// What waits to be put back is as secret as the file, and the file is as it was
// when it is back.
func TestPutBackKeepsTheMode(t *testing.T) {
	r := newRig(t)
	dir := filepath.Dir(r.cfg.State)
	ran := filepath.Join(dir, "ran")
	out := r.template(`{{ desired "a" }}`, "cd "+dir+"; stat -c %a .out.previous >>"+ran+"; rm out; exit 1")
	if err := os.WriteFile(out, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.wantLog("applying a template failed")
	wantFile(t, ran, "600\n")
	wantFile(t, out, "secret")
	if info, err := os.Stat(out); err != nil || info.Mode() != 0o600 {
		t.Errorf("put back as %v, %v", info, err)
	}
}

// A command that fails, since the disk is full, leaves nothing broken behind.
func TestPutBackOnAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		testpeer.Missing(t, "root, to mount a file system")
	}
	r := newRig(t)
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	r.template(`{{ desired "a" }}`, "head -c 100000 /dev/zero >"+disk+"/filler")
	out := filepath.Join(disk, "out")
	r.cfg.Templates[0].Destination = out
	old := strings.Repeat("old", 10_000)
	if err := os.WriteFile(out, []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.wantLog("No space left")
	wantFile(t, out, old)
	if err := r.halt(); err != nil {
		t.Error(err)
	}
}

// Trouble with the disk ends without a change in Consul, and so does the failure.
func TestTemplateHealsWithTheDisk(t *testing.T) {
	r := newRig(t)
	r.template(`{{ desired "a" }}`, "true")
	away := filepath.Join(t.TempDir(), "etc")
	r.cfg.Templates[0].Destination = filepath.Join(away, "out")
	if err := os.Mkdir(away, 0o755); err != nil {
		t.Fatal(err)
	}
	r.start()
	wantFile(t, filepath.Join(away, "out"), "ready")
	if err := os.RemoveAll(away); err != nil {
		t.Fatal(err)
	}
	r.put("a", "drain")
	r.wantLog("applying a template failed; trying again each second")
	if err := os.Mkdir(away, 0o755); err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(away, "out"), "drain")
	r.wantLog("the template is applied again")
	other := r.cfg
	other.State = ""
	ctx, cancel := context.WithTimeout(t.Context(), testpeer.Timeout(t))
	defer cancel()
	if err := render.Run(ctx, other, slog.New(slog.DiscardHandler)); !errors.Is(err, statefile.ErrLocked) {
		t.Errorf("a second render for the file: %v, want that it is locked", err)
	}
	if n := strings.Count(r.log.String(), "applying a template failed"); n > 2 {
		t.Errorf("logged %d times:\n%s", n, r.log)
	}
}

// A verdict that was pending is none any more once there is no command.
func TestVerdictOfNoCommand(t *testing.T) {
	r := newRig(t)
	dir := filepath.Dir(r.cfg.State)
	out := r.template(`{{ desired "a" }}`, "")
	for name, text := range map[string]string{".out.previous": "old", ".out.pending": "", "out": "refused"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.start()
	wantFile(t, out, "ready")
	testpeer.WaitFor(t, "nothing to be left", func() (bool, string) {
		left, err := filepath.Glob(filepath.Join(dir, ".out.p*"))
		return err == nil && len(left) == 0, strings.Join(left, " ")
	})
}

// A verdict that cannot be noted is not asked for again each second.
func TestVerdictIsNotedLater(t *testing.T) {
	for _, tc := range []struct{ verdict, file, ran, says string }{
		{"0", "ready", "ran\n", "the template is applied again"},
		{"1", "old", "ran\nran\n", "trying again on the next change"}, // once more, since the file was put back
	} {
		t.Run("exit status "+tc.verdict, func(t *testing.T) {
			r := newListRig(t)
			out, ran, pending := filepath.Join(r.dir, "out"), filepath.Join(r.dir, "ran"), filepath.Join(r.dir, ".out.pending")
			r.template(`{{ desired "a" }}`, "test -e "+ran+" || { rm "+pending+"; mkdir -p "+pending+"/x; }; echo ran >>"+ran+"; exit "+tc.verdict)
			if err := os.WriteFile(out, []byte("old"), 0o644); err != nil {
				t.Fatal(err)
			}
			r.start()
			failures := strings.Replace(staleOf(r.cfg.Templates[0]), "template_stale", "template_failures_total", 1)
			r.wantLog("trying again each second")
			r.wantLog("noting the verdict")
			r.wantMetric(failures+" 3", true)
			wantFile(t, ran, "ran\n")
			if err := os.RemoveAll(pending); err != nil {
				t.Fatal(err)
			}
			r.wantLog(tc.says)
			wantFile(t, out, tc.file)
			wantFile(t, ran, tc.ran)
			wantFile(t, filepath.Join(r.dir, ".out.previous"), "")
		})
	}
}
