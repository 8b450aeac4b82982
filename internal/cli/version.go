package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"hadrain/internal/version"
)

// versionDocument is what -o json prints for version.
type versionDocument struct {
	Schema  int    `json:"schema"`
	Program string `json:"program"`
	Version string `json:"version"`
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which build this is", Args: noOperands, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.check(); err != nil {
				return err
			}
			if a.json() {
				return printJSON(cmd.OutOrStdout(), versionDocument{Schema: schema, Program: "hadrain", Version: version.String()})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "hadrain %s\n", version.String())
			return err
		},
	}
}
