package responderd_test

import (
	"bytes"
	"testing"

	"hadrain/internal/cmdline"
	"hadrain/internal/responderd"
	"hadrain/internal/version"
)

// run runs one command line without any variable, and expects an exit status.
func run(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	if err := cmdline.Run(t.Context(), responderd.Command(), args, none, &out, &errs); cmdline.Code(err) != code {
		t.Errorf("%q: exit status %d, want %d: %v", args, cmdline.Code(err), code, err)
	}
	return out.String(), errs.String()
}

// Every program says its version in the same form.
func TestVersion(t *testing.T) {
	if out, _ := run(t, 0, "--version"); out != "hadrain-responder "+version.String()+"\n" {
		t.Errorf("--version: %q", out)
	}
}
