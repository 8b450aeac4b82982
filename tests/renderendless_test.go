package tests_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"hadrain/internal/testpeer"
)

// A template cannot be interrupted. One that loops for ever holds up neither the
// state, nor other templates, nor the end of render; and it is reported.
func TestRenderGivesUpOnAnEndlessTemplate(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.mark()
	endless, other, list := filepath.Join(s.dir, "endless"), filepath.Join(s.dir, "other"), filepath.Join(s.dir, "list")
	write(t, endless, "{{ range loop 900000000000 }}{{ end }}x")
	write(t, other, `{{ desired "a" }}`)
	entry := func(name, more string) string {
		return "- source: " + name + "\n  destination: " + name + ".out\n" + more
	}
	write(t, list, "templates:\n"+entry(endless, "  timeout: 300ms\n")+entry(other, ""))
	addr := unused(t)
	p := s.run(nil, "--templates", list, "--http.listen", addr)
	s.wantRows(p)
	p.WaitOutput(t, "template "+endless+": it takes longer than 300ms")
	stale := `hadrain_render_template_stale{destination="` + endless + `.out",template="` + endless + `"}`
	if got := metric(t, addr, stale); got != 1 {
		t.Errorf("%s is %v, want 1", stale, got)
	}
	s.put("a", "drain")
	s.wantRows(p, "a drain")
	wantContent(t, other+".out", "drain")

	// Mended, it goes on without a restart.
	write(t, endless, `mended {{ desired "a" }}`)
	p.Signal(syscall.SIGHUP)
	wantContent(t, endless+".out", "mended drain")

	write(t, endless, "{{ range loop 900000000000 }}{{ end }}x")
	write(t, list, "templates:\n"+entry(endless, "  timeout: 1h\n"))
	p.Signal(syscall.SIGHUP)
	p.WaitOutput(t, "listed no more")
	s.put("a", "maint")
	s.wantRows(p, "a maint")
	p.Signal(syscall.SIGTERM)
	if code := p.WaitExit(t); code != 0 {
		t.Errorf("exit status %d, want 0:\n%s", code, p.Output())
	}
	p.WaitOutput(t, `msg="a template still runs, not waiting for it" template=`+endless)
}

// wantContent waits until the file at path says text.
func wantContent(t *testing.T, path, text string) {
	t.Helper()
	testpeer.WaitFor(t, path+" to say "+text, func() (bool, string) {
		data, err := os.ReadFile(path)
		return err == nil && string(data) == text, string(data)
	})
}
