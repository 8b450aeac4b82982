package cmdline

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// globals is the annotation of a command that names the global flags it uses.
const globals = "hadrain_globals"

// UseGlobals names the flags of its parents that cmd has a use for. The others
// are taken all the same, as in "hadrain --yes version", but its help and its
// man page leave them out. A command for which it is not called uses all.
func UseGlobals(cmd *cobra.Command, names ...string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[globals] = strings.Join(names, " ")
	cmd.SetUsageFunc(func(c *cobra.Command) error {
		used, hidden := Globals(c), []*pflag.Flag{}
		c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && used.Lookup(f.Name) == nil {
				f.Hidden = true
				hidden = append(hidden, f)
			}
		})
		err := c.Root().UsageFunc()(c)
		for _, f := range hidden {
			f.Hidden = false // it is a flag of other commands, too
		}
		return err
	})
}

// Globals returns the flags of its parents that cmd has a use for.
func Globals(cmd *cobra.Command) *pflag.FlagSet {
	names, some := cmd.Annotations[globals]
	if !some {
		return cmd.InheritedFlags()
	}
	flags := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	flags.SortFlags = false
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(strings.Fields(names), f.Name) {
			flags.AddFlag(f)
		}
	})
	return flags
}
