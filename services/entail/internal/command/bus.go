package command

import (
	"github.com/spf13/cobra"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newBusCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{Use: "bus", Short: "Run the services again after messages on the bus were forged"}
	cmd.AddCommand(newBusResumeCommand(around))
	return cmd
}

func newBusResumeCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "Run the services again after messages on the bus were forged",
		Long: `After three forged messages within a minute the watcher halts all services: they
grant nothing and remove nothing. Replace the keys of NATS first, then resume.`,
		Example: "  entail bus resume",
		Args:    cobra.NoArgs,
	}
	q := newSyncCall(cmd, around)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		_, err := callAndPrint(cmd, q, syncv1connect.SyncServiceClient.Resume, &syncv1.ResumeRequest{}, report.Printer.WriteResumeResult)
		return err
	}
	return cmd
}
