package command

import (
	"github.com/spf13/cobra"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newStatus(around Surroundings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Tell how far every service has come, of whom an earlier text than their own is live, and what became of objects for OpenSearch",
		Example: "  entail status\n  entail status -o json",
		Args:    cobra.NoArgs,
	}
	q := syncQuestion(cmd, around)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		_, err := ask(cmd, q, syncv1connect.SyncServiceClient.GetStatus, &syncv1.GetStatusRequest{}, report.Page.Status)
		if err == nil && q.format == report.Table {
			cluster{around.Getenv}.tellKept(cmd)
			cluster{around.Getenv}.tellSearchStates(cmd)
		}
		return err
	}
	return cmd
}
