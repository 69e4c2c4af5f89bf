package command

import (
	"errors"

	"github.com/spf13/cobra"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

// errDrift makes the command fail if RoleBindings differ from the rules.
var errDrift = errors.New("the RoleBinding differs from what the rules require")

func newDriftCommand(around IOStreams) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:     "drift",
		Short:   "Check the RoleBindings of a namespace against its rules",
		Example: "  entail inferences drift -n team-a",
		Args:    cobra.NoArgs,
	}
	q := newInferenceCall(cmd, around)
	bindNamespaceFlag(cmd, around.Getenv, &namespace, "namespace of the roles and RoleBindings")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		drift, err := callAndPrint(cmd, q, inferencev1connect.InferenceServiceClient.CheckDrift,
			&inferencev1.CheckDriftRequest{Namespace: namespace}, report.Printer.WriteDrift)
		if err == nil && !drift.GetInStep() {
			err = errDrift
		}
		return err
	}
	return cmd
}

func newWatchCommand(around IOStreams) *cobra.Command {
	var namespace, token string
	cmd := &cobra.Command{
		Use:     "watch",
		Short:   "Show the implied roles and each change of them, until interrupted",
		Example: "  entail inferences watch -n team-a\n  entail inferences watch -A",
		Args:    cobra.NoArgs,
	}
	q := newInferenceWatchCall(cmd, around)
	bindNamespaceFlags(cmd, around.Getenv, &namespace, "only this namespace")
	cmd.Flags().StringVar(&token, "resume", "", "continue after the `token` of an earlier message (-o json prints it)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q.connection.timeout = 0 // A watch has no deadline.
		client, err := newAPIClient(&q.connection, q.client)
		if err != nil {
			return err
		}
		stream, err := client.WatchInferences(cmd.Context(), &inferencev1.WatchInferencesRequest{Namespace: namespace, ResumeToken: token})
		if err != nil {
			return err
		}
		defer stream.Close()
		for stream.Receive() {
			m := stream.Msg()
			if err := q.printAnswer(cmd.OutOrStdout(), m, func(p report.Printer) { p.WriteWatchMessage(m) }); err != nil {
				return err
			}
		}
		return stream.Err()
	}
	return cmd
}
