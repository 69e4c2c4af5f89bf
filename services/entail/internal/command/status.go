package command

import (
	"cmp"

	"github.com/spf13/cobra"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newStatusCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the progress of every service, the modules with an invalid edit, and the objects of OpenSearch by state",
		Long: "status shows the progress of every service, the modules with an invalid edit, and the objects of OpenSearch by state.\n\n" +
			"PENDING counts messages that NATS has not delivered yet, IN FLIGHT those in processing or waiting for a retry. SWEPT is when\n" +
			"the watcher last read all objects of a resource, and FOUND is how many it read. Later changes do not change FOUND.\n\n" +
			"The objects are read with the rights of your kubeconfig. The exit code is 5 if a part of them cannot be read.",
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
			texts, known, incomplete := in.listObjectsOnOldVersion(cmd)
			document, err := marshalWithObjectsOnOldVersion(answer, texts, known)
			if err != nil {
				return err
			}
			return cmp.Or(report.WriteDocument(cmd.OutOrStdout(), q.format, document), incomplete)
		}
		if err := q.printAnswer(cmd.OutOrStdout(), answer, func(p report.Printer) { p.WriteServiceStatus(answer) }); err != nil {
			return err
		}
		texts, _, incomplete := in.listObjectsOnOldVersion(cmd)
		printObjectsOnOldVersion(cmd, texts)
		return cmp.Or(in.printOpenSearchStates(cmd), incomplete)
	}
	return cmd
}
