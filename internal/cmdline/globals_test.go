package cmdline_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hadrain/internal/cmdline"
)

// The help of a command shows the global flags it uses, and hides none from the others.
func TestUseGlobals(t *testing.T) {
	root := &cobra.Command{Use: "prog"}
	root.PersistentFlags().Bool("yes", false, "")
	root.PersistentFlags().String("root", "", "")
	run := func(*cobra.Command, []string) {}
	some, none, all := &cobra.Command{Use: "some", Run: run}, &cobra.Command{Use: "none", Run: run}, &cobra.Command{Use: "all", Run: run}
	root.AddCommand(some, none, all)
	cmdline.UseGlobals(some, "root")
	cmdline.UseGlobals(none)
	for range 2 {
		for cmd, want := range map[*cobra.Command]string{some: "root", none: "", all: "root yes"} {
			help := cmd.UsageString()
			for _, flag := range []string{"root", "yes"} {
				if strings.Contains(help, "--"+flag) != strings.Contains(want, flag) {
					t.Errorf("%s shows --%s: %t\n%s", cmd.Name(), flag, strings.Contains(help, "--"+flag), help)
				}
			}
			var used []string
			cmdline.Globals(cmd).VisitAll(func(f *pflag.Flag) { used = append(used, f.Name) })
			if got := strings.Join(used, " "); got != want {
				t.Errorf("Globals(%s) = %q, want %q", cmd.Name(), got, want)
			}
			if err := cmd.ParseFlags([]string{"--yes"}); err != nil {
				t.Errorf("%s --yes: %v", cmd.Name(), err)
			}
		}
	}
}
