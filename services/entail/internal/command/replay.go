package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newReplayCommand(around IOStreams) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "replay (ID | KIND/[NAMESPACE/]NAME)",
		Short: "Run the reconciliation of an object again in every service",
		Long: `replay publishes the present state of an object again. Name the object, or a dead letter of it.
It never restores an older state.`,
		Example: "  entail replay 17\n  entail replay store/demo",
		Args:    cobra.ExactArgs(1),
	}
	q := newSyncCall(cmd, around)
	bindNamespaceFlag(cmd, around.Getenv, &namespace, "namespace of the object, when its kind has one")
	completeFirstArgument(cmd, kubeconfigCluster{around.Getenv}.objectArgumentCompleter(&namespace))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := newAPIClient(&q.connection, q.client)
		if err != nil {
			return err
		}
		request, err := newReplayRequest(cmd.Context(), client, args[0], namespace)
		if err != nil {
			return err
		}
		replayed, err := client.Replay(cmd.Context(), request)
		if err != nil {
			return err
		}
		return q.printAnswer(cmd.OutOrStdout(), replayed, func(p report.Printer) { p.WriteReplayResult(replayed) })
	}
	return cmd
}

// newReplayRequest names a dead letter by ID, or an object whose full reference the server returns for KIND/NAME.
func newReplayRequest(
	ctx context.Context, client syncv1connect.SyncServiceClient, argument, namespace string,
) (*syncv1.ReplayRequest, error) {
	if !strings.Contains(argument, "/") {
		id, err := parseLetterID(argument)
		return &syncv1.ReplayRequest{What: &syncv1.ReplayRequest_DeadLetterId{DeadLetterId: id}}, err
	}
	o, err := parseObjectArgument(argument, namespace)
	if err != nil {
		return nil, err
	}
	trace, err := awaitObjectTrace(ctx, client, o, 0)
	if err != nil {
		return nil, err
	}
	return &syncv1.ReplayRequest{What: &syncv1.ReplayRequest_Ref{Ref: trace.GetRef()}}, nil
}
