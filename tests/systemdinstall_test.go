package tests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

// blocks returns the shell commands of a document that this file runs, as one
// script.
func blocks(t *testing.T, document string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testpeer.Root(t), "docs", document))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	parts := strings.Split(string(text), "<!-- run by tests/systemdinstall_test.go -->\n```sh\n")
	for _, part := range parts[1:] {
		block, _, ok := strings.Cut(part, "\n```\n")
		if !ok {
			t.Fatalf("%s: a block that does not end", document)
		}
		script.WriteString(block + "\n")
	}
	if script.Len() == 0 {
		t.Fatalf("%s has no commands that are run here", document)
	}
	return script.String()
}

// packageFor builds the package for the machine that runs the tests.
func packageFor(t *testing.T) string {
	t.Helper()
	testpeer.Need(t, "dpkg-deb")
	dist := testpeer.Dir(t)
	arch, err := exec.Command("dpkg", "--print-architecture").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("packaging/make", "packages", strings.TrimSpace(string(arch)))
	cmd.Dir = testpeer.Root(t)
	cmd.Env = append(os.Environ(), "DIST="+dist, "VERSION=v0.0.1", "SOURCE_DATE_EPOCH=1789000000")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the package: %v\n%s", err, out)
	}
	debs, err := filepath.Glob(filepath.Join(dist, "*.deb"))
	if err != nil || len(debs) != 1 {
		t.Fatalf("the package: %q, %v", debs, err)
	}
	return debs[0]
}

// testInstall does what docs/install.md says, and nothing else.
func (b *balancer) testInstall() {
	t := b.t
	deb := packageFor(t)
	b.Install(t, deb, "/root/"+filepath.Base(deb), 0o644)
	b.startConsul()
	out := b.Exec(t, "env", "CONSUL_HTTP_TOKEN="+managementToken, "sh", "-euc", "cd /root\n"+blocks(t, "install.md"))
	for _, want := range []string{
		"no state yet, answering unsynced",
		"0 keys, index ",
		"ready 100%",
		"web,web-01,no check\n",
		"web,gke-cny-web,DRAIN (agent)\n",
		"hadrain_responder_",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("what docs/install.md says does not print %q", want)
		}
	}
	if t.Failed() {
		t.Logf("it prints\n%s", out)
	}
}
