package cmdline_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"hadrain/internal/cmdline"
)

// child makes the test binary a program that talks on standard error, works,
// then talks on standard output.
const child = "HADRAIN_CMDLINE_TEST_CHILD"

func TestMain(m *testing.M) {
	work := os.Getenv(child)
	if work == "" {
		os.Exit(m.Run())
	}
	os.Exit(cmdline.Main(&cobra.Command{Use: "prog", RunE: func(c *cobra.Command, _ []string) error {
		c.PrintErrln("about to work")
		err := os.WriteFile(work, nil, 0o600)
		_, written := c.OutOrStdout().Write([]byte("worked\n"))
		return errors.Join(err, written)
	}}))
}

// Nobody to talk to is no reason to die in the middle of something.
func TestReaderLeaves(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		leaves         string
		code           int
		stdout, stderr string
	}{
		{"stderr", 0, "worked\n", ""},
		{"stdout", cmdline.ExitPipe, "", "about to work\n"},
	} {
		t.Run(tc.leaves, func(t *testing.T) {
			work := t.TempDir() + "/work"
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr strings.Builder
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), child+"="+work)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if tc.leaves == "stderr" {
				cmd.Stderr = w
			} else {
				cmd.Stdout = w
			}
			// Its error is the exit status, which is looked at below.
			_ = cmd.Run()
			if _, err := os.Stat(work); err != nil {
				t.Errorf("it did not work: %v", err)
			}
			if code := cmd.ProcessState.ExitCode(); code != tc.code || stdout.String() != tc.stdout || stderr.String() != tc.stderr {
				t.Errorf("exit %d (%v), stdout %q, stderr %q", code, cmd.ProcessState, stdout.String(), stderr.String())
			}
		})
	}
}
