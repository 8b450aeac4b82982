package tests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

// blocks returns the shell commands of a document that a file of tests runs.
func blocks(t *testing.T, document, file string) []string {
	t.Helper()
	marked := regexp.MustCompile("(?s)<!-- run by tests/" + regexp.QuoteMeta(file) + " -->\n```sh\n(.*?)\n```\n")
	text, err := os.ReadFile(filepath.Join(testpeer.Root(t), "docs", document))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, match := range marked.FindAllStringSubmatch(string(text), -1) {
		all = append(all, match[1])
	}
	return all
}

// types runs commands as an operator with every right does, and wants what they
// print to hold each of wants.
func (b *balancer) types(commands string, wants ...string) {
	b.t.Helper()
	out := b.Exec(b.t, "env", "CONSUL_HTTP_TOKEN="+managementToken, "sh", "-euc", "cd /root\n"+commands)
	for _, want := range wants {
		if !strings.Contains(out, want) {
			b.t.Errorf("these commands do not print %q:\n%s\nbut\n%s", want, commands, out)
		}
	}
}

// packageFor builds the package for the architecture of this machine and returns
// its path.
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
func (b *balancer) testInstall(deb string) {
	t := b.t
	b.Install(t, deb, "/root/"+filepath.Base(deb), 0o644)
	b.startConsul()
	b.types(strings.Join(blocks(t, "install.md", "systemdinstall_test.go"), "\n"),
		"no state yet, answering unsynced",
		"0 keys, index ",
		"ready 100%",
		"web,web-01,no check\n",
		"web,gke-cny-web,DRAIN (agent)\n",
		"hadrain_responder_",
	)
}

var agentWords = regexp.MustCompile(` agent-(check|addr \S+|port \S+|inter \S+|send ".*")`)

// testUpgrade does what docs/upgrade.md says, beginning with an HAProxy that
// asks no agent and a server that is drained by hand.
func (b *balancer) testUpgrade() {
	t := b.t
	steps := blocks(t, "upgrade.md", "systemdinstall_test.go")
	if len(steps) != 5 {
		t.Fatalf("docs/upgrade.md has %d blocks to run, want upgrade, write down, reload, back and root", len(steps))
	}
	b.startConsul()
	b.Exec(t, "systemctl", "restart", "hadrain-render")
	b.WriteFile(t, "/etc/haproxy/haproxy.cfg", agentWords.ReplaceAllString(haproxyConfig(t), ""))
	b.Exec(t, "systemctl", "restart", "haproxy")
	b.types("echo 'set server web/web-02 state drain' | socat stdio /run/haproxy/admin.sock")
	b.types(steps[0], "v0.0.1", `Status: "1 key, `)
	b.types(steps[1], "web/web-02")
	b.WriteFile(t, "/etc/haproxy/haproxy.cfg", haproxyConfig(t))
	b.types(steps[2], "web/web-01 admin state 0\n", "web/web-02 admin state 8\n", "web/gke-cny-web admin state 8")
	b.types(steps[3]+"\nsleep 3\n"+showStates, "web/web-02 admin state 0\n", "web/gke-cny-web admin state 8")
	b.types("consul kv put gitlab-haproxy-agent/state/web/web-01 maint")
	b.types(`consul acl policy update -name hadrain-render -rules 'key_prefix "gitlab-haproxy-agent/state/" { policy = "read" }'`)
	b.types(steps[4], "web/web-01  maint")
	b.types("sleep 3\n"+showStates, "web/web-01 admin state 1\n", "web/gke-cny-web admin state 0")
}

const showStates = `echo 'show servers state web' | socat stdio /run/haproxy/admin.sock | awk 'NR > 2 && NF { print $2 "/" $4, "admin state", $7 }'`
