package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/cli"
	"hadrain/internal/cmdline"
	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
)

// The words after "hadrain" as a shell has them when somebody presses tab, and
// what is offered.
func TestComplete(t *testing.T) {
	t.Setenv("HADRAIN_STATE", stateFile(t, "canary", "web/web-01", "web/web-02", "zone-c"))
	for words, want := range map[string]string{
		"drain ca":                "canary",
		"drain web/":              "web/web-01 web/web-02",
		"drain web/web-01 web/":   "web/web-02",
		"drain @":                 "@canary @zone-c",
		"drain nothing":           "",
		"weight z":                "zone-c",
		"status web/web-01 canar": "canary",
		"query web/web-0":         "web/web-01 web/web-02",
		"undrai":                  "undrain",
		"status -o w":             "table wide json", // the shell picks
		"version ":                "",
	} {
		t.Run(words, func(t *testing.T) {
			if got := complete(t, strings.Split(words, " ")); got != want {
				t.Errorf("completions of %q are %q, want %q", words, got, want)
			}
		})
	}
}

func TestCompleteWithoutState(t *testing.T) {
	t.Setenv("HADRAIN_STATE", filepath.Join(t.TempDir(), "none"))
	if got := complete(t, []string{"drain", ""}); got != "" {
		t.Errorf("completions without a state file are %q, want none", got)
	}
}

// complete returns the completions that the shell scripts would get, without
// their descriptions.
func complete(t *testing.T, words []string) string {
	t.Helper()
	var out, problems bytes.Buffer
	args := append([]string{"__complete"}, words...)
	if err := cmdline.Run(t.Context(), cli.Command(), args, os.LookupEnv, &out, &problems); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, problems.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := len(lines) - 1
	if lines[last] != ":4" { // cobra.ShellCompDirectiveNoFileComp
		t.Errorf("directive of %q is %q, want :4 (no file names)", words, lines[last])
	}
	var found []string
	for _, line := range lines[:last] {
		word, _, _ := strings.Cut(line, "\t")
		found = append(found, word)
	}
	return strings.Join(found, " ")
}

// stateFile writes a state file with keys, which must be sorted.
func stateFile(t *testing.T, keys ...string) string {
	t.Helper()
	f := &statefile.File{Head: statefile.Head{Root: "hadrain", ID: "6f1c", Index: 7, Rendered: time.Unix(1, 0).UTC(), Host: "lb"}}
	for _, key := range keys {
		f.Rows = append(f.Rows, desired.Row{Key: key, State: desired.Drain})
	}
	path := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(path, statefiletest.Format(f), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
