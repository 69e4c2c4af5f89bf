package command

import (
	"github.com/spf13/cobra"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newIAMLostCommand(around IOStreams) *cobra.Command {
	var (
		namespace string
		limit     int
	)
	cmd := &cobra.Command{
		Use:   "lost",
		Short: "List bindings whose subject or target is gone for good",
		Long: "lost lists the names in PolicyBindings and GroupMemberships whose objects are gone for good: a binding\n" +
			"applies to one UID, and no object has this UID any more. Such a name gives no access, even if you create another\n" +
			"object of the same name. Remove the name, or make another binding for the new object.",
		Example: "  entail iam lost -A\n  entail iam lost -n team-a -o json",
		Args:    cobra.NoArgs,
	}
	q := newTupleCall(cmd, around)
	bindNamespaceFlags(cmd, around.Getenv, &namespace, "only this namespace")
	bindLimitFlag(cmd, &limit, defaultTuples, "maximum number of names")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := newAPIClient(&q.connection, q.client)
		if err != nil {
			return err
		}
		all := &tuplev1.ListLostBindingsResponse{}
		all.References, all.NextPageToken, err = collectPages(limit, func(left int32, token string) ([]*tuplev1.LostReference, string, error) {
			page, err := client.ListLostBindings(cmd.Context(), &tuplev1.ListLostBindingsRequest{Namespace: namespace, PageSize: left, PageToken: token})
			all.Total, all.NotChecked = page.GetTotal(), page.GetNotChecked()
			return page.GetReferences(), page.GetNextPageToken(), err
		})
		if err != nil {
			return err
		}
		return q.printAnswer(cmd.OutOrStdout(), all, func(p report.Printer) { p.WriteLostReferences(namespace, all) })
	}
	return cmd
}
