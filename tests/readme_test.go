package tests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

// readmeBlock returns the shell commands of README.md that this file runs.
func readmeBlock(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testpeer.Root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "<!-- run by tests/readme_test.go -->\n```sh\n")
	block, _, closed := strings.Cut(rest, "\n```\n")
	if !ok || !closed {
		t.Fatal("README.md has no block marked for this test")
	}
	return block
}

// TestReadmeByHand types what the README says, on a machine of its own: fixed
// ports and paths are then nobody else's, and what it leaves running ends.
func TestReadmeByHand(t *testing.T) {
	if os.Geteuid() != 0 {
		testpeer.Missing(t, "root, for a machine of its own")
	}
	unshare := testpeer.Need(t, "unshare")
	for _, program := range []string{"curl", "ip", "git", "make"} {
		testpeer.Need(t, program)
	}
	path := []string{filepath.Dir(testpeer.Need(t, "consul")), filepath.Dir(testpeer.Need(t, "haproxy")), os.Getenv("PATH")}
	script := "set -eu\nip link set lo up\nmount -t tmpfs tmpfs /var/lib\n" + readmeBlock(t)
	cmd := exec.Command(unshare, "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c", script)
	cmd.Dir = checkout(t)
	cmd.Env = append(os.Environ(), "PATH="+strings.Join(path, ":"))
	p := testpeer.Start(t, cmd)
	select {
	case <-p.Done():
	case <-time.After(5 * time.Minute): // it builds everything first
		t.Fatal("the commands do not end")
	}
	if code := p.WaitExit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	out := p.Output()
	for _, want := range []string{
		"\ncanary  drain\n",       // cat of the state file
		"\nweb,web-01,no check\n", // show stat: not in the group
		"\nweb,gke-cny-web,DRAIN (agent)\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
}

// checkout returns a copy of the tree as git knows it, changes included.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("/bin/sh", "-c", `git ls-files -z --cached --others --exclude-standard | tar --null -T - -c --ignore-failed-read | tar -x -C "$0"`, dir)
	cmd.Dir = testpeer.Root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("copying the tree: %v\n%s", err, out)
	}
	return dir
}
