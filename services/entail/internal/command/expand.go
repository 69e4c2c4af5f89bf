package command

import (
	"github.com/spf13/cobra"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newExpandCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "expand STORE RELATION OBJECT",
		Short: "Show the users and usersets that a relation to an object consists of",
		Long: "expand asks OpenFGA for the definition of a relation to an object, with its tuples and the objects that declare them. It\n" +
			"shows one level: expand each relation in it for more.",
		Example: "  entail expand demo viewer document:roadmap",
		Args:    cobra.ExactArgs(3),
	}
	q := newTupleCall(cmd, around)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request := &tuplev1.ExpandRequest{Store: args[0], Relation: args[1], Object: args[2]}
		var unreadable error
		_, err := callAndPrint(cmd, q, tuplev1connect.TupleServiceClient.Expand, request, func(p report.Printer, m *tuplev1.ExpandResponse) {
			unreadable = p.WriteExpansion(m)
		})
		if err == nil {
			err = unreadable
		}
		return withUndecided(err)
	}
	return cmd
}
