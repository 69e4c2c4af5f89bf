package command

import (
	"github.com/spf13/cobra"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newStatus(around Surroundings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Tell how far every service has come",
		Args:  cobra.NoArgs,
	}
	q := newQuestion(cmd, around, syncAPI())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := dial(&q.connection, syncv1connect.NewSyncServiceClient)
		if err != nil {
			return err
		}
		status, err := client.GetStatus(cmd.Context(), &syncv1.GetStatusRequest{})
		if err != nil {
			return err
		}
		return q.write(cmd.OutOrStdout(), status, func(p report.Page) error { return p.Status(status) })
	}
	return cmd
}
