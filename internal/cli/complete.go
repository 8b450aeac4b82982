package cli

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hadrain/internal/statefile"
)

// defaultState is where hadrain-render writes unless HADRAIN_STATE says otherwise.
const defaultState = "/var/lib/hadrain/state"

// completeKeys completes operands with the servers and groups of the local state
// file. Pressing a key must not wait for a network, so nobody else is asked; away
// from a load balancer there is no file, and nothing is offered.
func completeKeys(_ *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	file, _, err := statefile.Load(cmp.Or(os.Getenv("HADRAIN_STATE"), defaultState))
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	// @canary names the same group as canary.
	name, group := strings.CutPrefix(start, "@")
	var found []cobra.Completion
	for _, row := range file.Rows {
		switch {
		case !strings.HasPrefix(row.Key, name), slices.Contains(args, row.Key):
		case !group:
			found = append(found, row.Key)
		case !strings.Contains(row.Key, "/"):
			found = append(found, "@"+row.Key)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
