package cmdline_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"hadrain/internal/cmdline"
)

// command returns a program with one verb; what the verb saw goes to its output.
func command(result error) *cobra.Command {
	root := &cobra.Command{Use: "prog"}
	root.PersistentFlags().String("kv-root", "hadrain", "")
	verb := &cobra.Command{
		Use:  "verb ARG",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, _ []string) error {
			value, err := c.Flags().GetString("kv-root")
			if _, e := io.WriteString(c.OutOrStdout(), value); e != nil {
				return e
			}
			return errors.Join(err, result)
		},
	}
	verb.Flags().Int("count", 0, "")
	root.AddCommand(verb)
	return root
}

func TestRun(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name   string
		args   string
		env    string
		result error
		code   int
		stdout string
		stderr string
	}{
		{"default", "verb x", "", nil, 0, "hadrain", ""},
		{"flag", "verb x --kv-root a", "", nil, 0, "a", ""},
		{"variable", "verb x", "HADRAIN_KV_ROOT=b", nil, 0, "b", ""},
		{"flag beats variable", "verb x --kv-root a", "HADRAIN_KV_ROOT=b", nil, 0, "a", ""},
		{"empty variable counts", "verb x", "HADRAIN_KV_ROOT=", nil, 0, "", ""},
		{"bad variable", "verb x", "HADRAIN_COUNT=many", nil, 2, "", "HADRAIN_COUNT"},
		{"run-time error", "verb x", "", boom, 1, "hadrain", "prog: boom"},
		{"chosen status", "verb x", "", fmt.Errorf("why: %w", cmdline.Exit(4, boom)), 4, "hadrain", "prog: why: boom"},
		{"unknown verb", "vreb", "", nil, 2, "", `unknown command "vreb"`},
		{"help for an unknown verb", "help vreb", "", nil, 2, "", `unknown command "vreb" for "prog"`},
		{"help for too much", "help verb more", "", nil, 2, "", `unknown command "more" for "prog verb"`},
		{"unknown shell", "completion nope", "", nil, 2, "", `unknown command "nope" for "prog completion"`},
		{"unknown flag", "verb x --nope", "", nil, 2, "", "--nope"},
		{"bad flag", "verb x --count many", "", nil, 2, "", "many"},
		{"too few arguments", "verb", "", nil, 2, "", "hint: prog verb --help"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			cmd := command(tc.result)
			lookup := func(name string) (string, bool) {
				n, value, _ := strings.Cut(tc.env, "=")
				return value, n == name
			}
			err := cmdline.Run(t.Context(), cmd, strings.Fields(tc.args), lookup, &stdout, &stderr)
			if got := cmdline.Code(err); got != tc.code {
				t.Errorf("exit status %d, want %d (%v)", got, tc.code, err)
			}
			if got := stdout.String(); got != tc.stdout {
				t.Errorf("stdout %q, want %q", got, tc.stdout)
			}
			if !strings.Contains(stderr.String(), tc.stderr) {
				t.Errorf("stderr %q, want it to contain %q", stderr.String(), tc.stderr)
			}
		})
	}
}

func TestExitOfNil(t *testing.T) {
	if err := cmdline.Exit(3, nil); err != nil {
		t.Errorf("Exit(3, nil) = %v, want nil", err)
	}
}
