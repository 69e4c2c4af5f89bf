package command

import (
	"github.com/spf13/cobra"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newIAM(around Surroundings) *cobra.Command {
	cmd := &cobra.Command{Use: "iam", Short: "Tell what is protected, and how far its model has come"}
	cmd.AddCommand(newIAMKinds(around), newIAMModel(around))
	return cmd
}

func newIAMKinds(around Surroundings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "kinds",
		Short:   "List the kinds that are protected: by what permissions, below which parents",
		Example: "  entail iam kinds",
		Args:    cobra.NoArgs,
	}
	q := accessQuestion(cmd, around)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := dial(&q.connection, q.client)
		if err != nil {
			return err
		}
		all, err := protectedResources(cmd.Context(), client)
		if err != nil {
			return err
		}
		return q.write(cmd.OutOrStdout(), all, func(p report.Page) { p.ProtectedResources(all) })
	}
	return cmd
}

func newIAMModel(around Surroundings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "model",
		Short:   "Tell how large the model of IAM is, and whether OpenFGA has it",
		Example: "  entail iam model -o json",
		Args:    cobra.NoArgs,
	}
	q := accessQuestion(cmd, around)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		_, err := ask(cmd, q, accessv1connect.AccessServiceClient.GetModelStatus, &accessv1.GetModelStatusRequest{}, report.Page.ModelStatus)
		return err
	}
	return cmd
}
