package command

import (
	"github.com/spf13/cobra"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newBus(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{Use: "bus", Short: "Run the services again after messages on the bus were forged"}
	cmd.AddCommand(newResume(around))
	return cmd
}

func newResume(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "Run the services again after messages on the bus were forged",
		Long: `After three forged messages within a minute the watcher halts all services: they
grant nothing and remove nothing. Replace the keys of NATS first, then resume.`,
		Example: "  entail bus resume",
		Args:    cobra.NoArgs,
	}
	q := syncQuestion(cmd, around)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := dialAPI(&q.connection, q.client)
		if err != nil {
			return err
		}
		resumed, err := client.Resume(cmd.Context(), &syncv1.ResumeRequest{})
		if err != nil {
			return err
		}
		return q.writeAnswer(cmd.OutOrStdout(), resumed, func(p report.Page) { p.Resumed(resumed) })
	}
	return cmd
}
