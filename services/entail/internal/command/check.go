package command

import (
	"github.com/spf13/cobra"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newCheckCommand(around IOStreams) *cobra.Command {
	var question storeQuestion
	cmd := &cobra.Command{
		Use:   "check STORE USER RELATION OBJECT",
		Short: "Check whether a user has a relation to an object of a Store",
		Long: "check asks OpenFGA whether the tuples and the model of a Store give a user a relation to an object.\n\n" +
			storeExitHelp + "\n\n" + "A tuple in quotes asks as if the store had it: --tuple \"user:carl assignee role:staff\". why shows the reasons.",
		Example: "  entail check demo user:beth viewer document:roadmap\n" +
			"  entail check demo user:beth viewer document:roadmap --context @context.json\n" +
			"  entail check demo user:beth viewer document:roadmap --after store/demo",
		Args: cobra.ExactArgs(4),
	}
	q := newTupleCall(cmd, around)
	question.bindFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := question.parseFlags(cmd); err != nil {
			return err
		}
		request := &tuplev1.CheckRequest{
			Store: args[0], Key: &tuplev1.TupleKey{User: args[1], Relation: args[2], Object: args[3]},
			Context: question.context, ContextualTuples: question.tuples, After: question.after,
		}
		answer, err := callAndPrint(cmd, q, tuplev1connect.TupleServiceClient.Check, request, func(p report.Printer, m *tuplev1.CheckResponse) {
			p.WriteCheckAnswer(request, m)
		})
		if err == nil && !answer.GetAllowed() {
			return exit.ErrTold
		}
		return withUndecided(err)
	}
	return cmd
}

func newWhyCommand(around IOStreams) *cobra.Command {
	var (
		question storeQuestion
		all      bool
	)
	cmd := &cobra.Command{
		Use:   "why STORE USER RELATION OBJECT",
		Short: "Explain why a user has a relation to an object of a Store, or what is missing",
		Long: "why prints the steps of the decision, down to each tuple and the object that declares it. If the answer is yes, it shows only\n" +
			"the steps that give the relation.\n\n" + storeExitHelp,
		Example: "  entail why demo user:beth viewer document:roadmap\n  entail why demo user:beth editor document:roadmap --all",
		Args:    cobra.ExactArgs(4),
	}
	q := newTupleCall(cmd, around)
	question.bindFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "show every step, also those that cannot matter")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := question.parseFlags(cmd); err != nil {
			return err
		}
		request := &tuplev1.ExplainCheckRequest{
			Store: args[0], Key: &tuplev1.TupleKey{User: args[1], Relation: args[2], Object: args[3]},
			Context: question.context, ContextualTuples: question.tuples, After: question.after,
		}
		answer, err := callAndPrint(cmd, q, tuplev1connect.TupleServiceClient.ExplainCheck, request,
			func(p report.Printer, m *tuplev1.ExplainCheckResponse) { p.WriteDecision(m, all) })
		switch {
		case err != nil:
			return withUndecided(err)
		case answer.GetTree().GetAnswer() == tuplev1.Decision_ANSWER_UNDECIDED:
			return errTruncated
		case !answer.GetAllowed():
			return exit.ErrTold
		}
		return nil
	}
	return cmd
}
