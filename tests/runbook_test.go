package tests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

// runbookScript returns the commands of a section of the runbook.
func runbookScript(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(testpeer.Root(t), "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var script strings.Builder
	inside := false
	for line := range strings.Lines(section) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "```"):
			inside = line == "```sh"
		case inside:
			script.WriteString(line + "\n")
		}
	}
	if !found || script.Len() == 0 {
		t.Fatalf("docs/runbook.md has no commands under %q", heading)
	}
	return script.String()
}

// After a loss of all data in Consul the runbook's commands bring back what the
// load balancers know, and no server changes meanwhile.
func TestRunbookAfterALossOfData(t *testing.T) {
	s := newRenderStack(t, testpeer.ConsulConfig{})
	s.mark()
	s.put("canary", "drain # chg-123 \"a  b\"")
	s.put("web/a", "drain")
	p := s.run(nil)
	s.wantRows(p, "canary drain", "web/a drain")
	s.put("web/a", "dran")
	s.put("web/b", "oops")
	before := []string{"canary drain", "web/a drain", "web/b hold"}
	s.wantRows(p, before...)
	s.consul.Stop(t)
	s.consul.Start(t)
	p.WaitOutput(t, "reason=no_sentinel")

	bin := t.TempDir()
	for name, path := range map[string]string{"hadrain": testpeer.Build(t, "hadrain"), "consul": testpeer.Need(t, "consul")} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	script := strings.ReplaceAll(runbookScript(t, "Consul has lost its data"), "/var/lib/hadrain/state", s.statePath())
	cmd := exec.Command("bash", "-euc", script)
	cmd.Env = append(os.Environ(), "CONSUL_HTTP_ADDR="+s.consul.Addr(), "PATH="+bin+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the runbook's commands: %v\n%s\n%s", err, script, out)
	}
	p.WaitOutput(t, "accepted again")
	s.wantRows(p, before...)
	if pair, _, err := s.kv.Get("hadrain/state/canary", nil); err != nil || pair == nil || string(pair.Value) != "drain    # chg-123 \"a  b\"" {
		t.Errorf("the note is %+v, %v", pair, err)
	}
}
