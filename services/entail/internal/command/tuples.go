package command

import (
	"github.com/spf13/cobra"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

// defaultTuples is the default of --limit.
const defaultTuples = 1000

func newTuplesCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{Use: "tuples", Short: "List declared and undeclared tuples of Stores"}
	cmd.AddCommand(newTuplesListCommand(around), newTuplesUndeclaredCommand(around))
	return cmd
}

func newTuplesListCommand(around IOStreams) *cobra.Command {
	var (
		limit   int
		request tuplev1.ListTuplesRequest
	)
	cmd := &cobra.Command{
		Use:     "list STORE",
		Short:   "List declared tuples, the object that declares each, and its state in OpenFGA",
		Example: "  entail tuples list demo\n  entail tuples list demo --owner authorizationmodel/demo-documents",
		Args:    cobra.ExactArgs(1),
	}
	q := newTupleCall(cmd, around)
	bindLimitFlag(cmd, &limit, defaultTuples, "maximum number of tuples")
	cmd.Flags().StringVar(&request.Object, "object", "", "only tuples with this `object`")
	cmd.Flags().StringVar(&request.Relation, "relation", "", "only tuples with this `relation`")
	cmd.Flags().StringVar(&request.User, "user", "", "only tuples with this `user`")
	cmd.Flags().StringVar(&request.Owner, "owner", "", "only tuples that this object declares, as `KIND/NAME`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := newAPIClient(&q.connection, q.client)
		if err != nil {
			return err
		}
		request.Store = args[0]
		all := &tuplev1.ListTuplesResponse{}
		all.Tuples, all.NextPageToken, err = collectPages(limit, func(left int32, token string) ([]*tuplev1.Tuple, string, error) {
			request.PageSize, request.PageToken = left, token
			page, err := client.ListTuples(cmd.Context(), &request)
			return page.GetTuples(), page.GetNextPageToken(), err
		})
		if err != nil {
			return err
		}
		return q.printAnswer(cmd.OutOrStdout(), all, func(p report.Printer) { p.WriteDeclaredTuples(all) })
	}
	return cmd
}

func newTuplesUndeclaredCommand(around IOStreams) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "undeclared STORE",
		Short: "List tuples in OpenFGA that no object declares, and what happens to them",
		Long: `undeclared reads the whole OpenFGA store, and lists the tuples that no Store or AuthorizationModel declares:

unmanaged        no object has it in its record, so other software wrote it. It stays
to be removed    an object has it in its record and does not declare it any more
to be replaced   an object declares it with another condition
contested        a replica may still be writing it. It is removed afterwards
kept             an object has it in its record. It stays until the declared tuples of the store are known`,
		Example: "  entail tuples undeclared demo\n  entail tuples undeclared demo -o json",
		Args:    cobra.ExactArgs(1),
	}
	q := newTupleCall(cmd, around)
	bindLimitFlag(cmd, &limit, defaultTuples, "stop after this many tuples")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := newAPIClient(&q.connection, q.client)
		if err != nil {
			return err
		}
		all := &tuplev1.ListUndeclaredTuplesResponse{}
		all.Tuples, all.NextPageToken, err = collectPages(limit, func(_ int32, token string) ([]*tuplev1.UndeclaredTuple, string, error) {
			page, err := client.ListUndeclaredTuples(cmd.Context(),
				&tuplev1.ListUndeclaredTuplesRequest{Store: args[0], PageSize: maxPage, PageToken: token})
			return page.GetTuples(), page.GetNextPageToken(), err
		})
		if err != nil {
			return err
		}
		return q.printAnswer(cmd.OutOrStdout(), all, func(p report.Printer) { p.WriteUndeclaredTuples(all) })
	}
	return cmd
}
