package command

import (
	"github.com/spf13/cobra"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newListObjectsCommand(around IOStreams) *cobra.Command {
	var question storeQuestion
	cmd := &cobra.Command{
		Use:     "list-objects STORE USER RELATION TYPE",
		Short:   "List the objects of a type to which a user has a relation",
		Long:    "list-objects asks OpenFGA for the objects of a type to which a user has a relation.\n\n" + listExitHelp,
		Example: "  entail list-objects demo user:beth viewer document",
		Args:    cobra.ExactArgs(4),
	}
	q := newTupleCall(cmd, around)
	question.bindFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := question.parseFlags(cmd); err != nil {
			return err
		}
		answer, err := callAndPrint(cmd, q, tuplev1connect.TupleServiceClient.ListObjects, &tuplev1.ListObjectsRequest{
			Store: args[0], User: args[1], Relation: args[2], Type: args[3],
			Context: question.context, ContextualTuples: question.tuples, After: question.after,
		}, report.Printer.WriteObjects)
		return truncatedError(answer, withUndecided(err))
	}
	return cmd
}

func newListUsersCommand(around IOStreams) *cobra.Command {
	var question storeQuestion
	cmd := &cobra.Command{
		Use:   "list-users STORE USERTYPE RELATION OBJECT",
		Short: "List the users of a type that have a relation to an object",
		Long: "list-users asks OpenFGA for the users of a type, such as user or group#member, that have a relation to an object.\n" +
			"user:* stands for every user. OpenFGA then does not list the users that the model excludes: check each.\n\n" + listExitHelp,
		Example: "  entail list-users demo user viewer document:roadmap\n  entail list-users demo role#assignee viewer document:roadmap",
		Args:    cobra.ExactArgs(4),
	}
	q := newTupleCall(cmd, around)
	question.bindFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := question.parseFlags(cmd); err != nil {
			return err
		}
		answer, err := callAndPrint(cmd, q, tuplev1connect.TupleServiceClient.ListUsers, &tuplev1.ListUsersRequest{
			Store: args[0], UserType: args[1], Relation: args[2], Object: args[3],
			Context: question.context, ContextualTuples: question.tuples, After: question.after,
		}, report.Printer.WriteUsers)
		return truncatedError(answer, withUndecided(err))
	}
	return cmd
}
