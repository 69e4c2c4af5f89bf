package command

import (
	"github.com/spf13/cobra"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newStatusCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show the progress of every service, the modules with an invalid edit, and the objects of OpenSearch by state",
		Example: "  entail status\n  entail status -o json",
		Args:    cobra.NoArgs,
	}
	q := newSyncCall(cmd, around)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := newAPIClient(&q.connection, q.client)
		if err != nil {
			return err
		}
		answer, err := client.GetStatus(cmd.Context(), &syncv1.GetStatusRequest{})
		if err != nil {
			return err
		}
		in := kubeconfigCluster{around.Getenv}
		if q.format != report.Table {
			texts, known := in.listObjectsOnOldVersion(cmd)
			document, err := marshalWithObjectsOnOldVersion(answer, texts, known)
			if err != nil {
				return err
			}
			return report.WriteDocument(cmd.OutOrStdout(), q.format, document)
		}
		if err := q.printAnswer(cmd.OutOrStdout(), answer, func(p report.Printer) { p.WriteServiceStatus(answer) }); err != nil {
			return err
		}
		texts, _ := in.listObjectsOnOldVersion(cmd)
		printObjectsOnOldVersion(cmd, texts)
		in.printOpenSearchStates(cmd)
		return nil
	}
	return cmd
}
