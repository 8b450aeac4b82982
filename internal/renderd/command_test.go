package renderd_test

import (
	"bytes"
	"strings"
	"testing"

	"hadrain/internal/cmdline"
	"hadrain/internal/renderd"
	"hadrain/internal/version"
)

// run runs one command line without any variable, and expects an exit status.
func run(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	if err := cmdline.Run(t.Context(), renderd.Command(), args, none, &out, &errs); cmdline.Code(err) != code {
		t.Errorf("%q: exit status %d, want %d: %v", args, cmdline.Code(err), code, err)
	}
	return out.String(), errs.String()
}

// Every program says its version in the same form.
func TestVersion(t *testing.T) {
	if out, _ := run(t, 0, "--version"); out != "hadrain-render "+version.String()+"\n" {
		t.Errorf("--version: %q", out)
	}
}

func TestHelpNamesExitStatuses(t *testing.T) {
	if out, _ := run(t, 0, "--help"); !strings.Contains(out, "2 usage, 3 another process holds the lock") {
		t.Errorf("--help says nothing of the lock:\n%s", out)
	}
}

// The error of a directory that is not there says how to make it.
func TestNoDirectory(t *testing.T) {
	dir := t.TempDir() + "/nowhere"
	_, stderr := run(t, 1, "--state", dir+"/state", "--http.listen", "", "--consul-addr", "127.0.0.1:1")
	if !strings.HasSuffix(stderr, "no such file or directory; create the directory: mkdir -p "+dir+"\n") {
		t.Errorf("got %q", stderr)
	}
}

// An address that cannot be used does not heal, so systemd must not try again;
// and it may hold a password.
func TestNoAddress(t *testing.T) {
	_, stderr := run(t, 2, "--state", t.TempDir()+"/state", "--http.listen", "", "--consul-addr", "http://user:se/cret@consul")
	if !strings.Contains(stderr, `address of Consul "http://consul": a "/" before "@"`) || strings.Contains(stderr, "cret") {
		t.Errorf("got %q", stderr)
	}
}
