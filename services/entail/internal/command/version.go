package command

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/services/entail/internal/report"
	"github.com/entail-dev/entail/services/internal/version"
)

func newVersionCommand() *cobra.Command {
	format := report.Table
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  entail version\n  entail version -o json",
		Args:    cobra.NoArgs,
	}
	format.BindFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		build := version.CurrentBuild()
		if format == report.Table {
			cmd.Println("entail", build)
			return nil
		}
		document, err := json.Marshal(build)
		if err != nil {
			return fmt.Errorf("encode version: %w", err)
		}
		return report.WriteDocument(cmd.OutOrStdout(), format, document)
	}
	return cmd
}
