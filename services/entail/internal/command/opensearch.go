package command

import (
	"github.com/spf13/cobra"

	opensearchv1 "github.com/entail-dev/entail/gen/entail/opensearch/v1"
	"github.com/entail-dev/entail/gen/entail/opensearch/v1/opensearchv1connect"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newOpenSearchCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{Use: "opensearch", Short: "Show the users, roles and mappings of an OpenSearch cluster, and the objects that declare them"}
	cmd.AddCommand(
		newOpenSearchUsersCommand(around), newOpenSearchRolesCommand(around), newOpenSearchMappingCommand(around),
		newOpenSearchPreviewCommand(around), newOpenSearchStatusCommand(around),
	)
	return cmd
}

// bindOpenSearchClusterFlags defines the flags that name an OpenSearchCluster.
func bindOpenSearchClusterFlags(cmd *cobra.Command) *opensearchv1.ClusterRef {
	of := &opensearchv1.ClusterRef{}
	cmd.Flags().StringVarP(&of.Namespace, "namespace", "n", "default", "`namespace` of the OpenSearchCluster")
	cmd.Flags().StringVar(&of.Name, "cluster", "search", "`name` of the OpenSearchCluster")
	return of
}

func newOpenSearchUsersCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "users", Short: "List the users of a cluster, and the object that each belongs to",
		Example: "  entail opensearch users\n  entail opensearch users -n team-a --cluster logs -o json",
		Args:    cobra.NoArgs,
	}
	q, of := newOpenSearchCall(cmd, around), bindOpenSearchClusterFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		_, err := callAndPrint(cmd, q, opensearchv1connect.OpenSearchServiceClient.ListUsers, &opensearchv1.ListUsersRequest{Cluster: of},
			report.Printer.WriteOpenSearchUsers)
		return err
	}
	return cmd
}

func newOpenSearchRolesCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "roles", Short: "List the roles of a cluster, and the object that each belongs to",
		Example: "  entail opensearch roles\n  entail opensearch roles -n team-a --cluster logs",
		Args:    cobra.NoArgs,
	}
	q, of := newOpenSearchCall(cmd, around), bindOpenSearchClusterFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		_, err := callAndPrint(cmd, q, opensearchv1connect.OpenSearchServiceClient.ListRoles, &opensearchv1.ListRolesRequest{Cluster: of},
			report.Printer.WriteOpenSearchRoles)
		return err
	}
	return cmd
}

func newOpenSearchMappingCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mapping [ROLE]",
		Short: "Show which users have a role and by which binding; without ROLE, the mappings of all roles",
		Long: `mapping lists each entry of a role's mapping, with the bindings that give it. An entry of other software is in no
object's record. It stays when bindings are deleted.`,
		Example: "  entail opensearch mapping readall\n  entail opensearch mapping\n  entail opensearch mapping readall -o json",
		Args:    cobra.MaximumNArgs(1),
	}
	q, of := newOpenSearchCall(cmd, around), bindOpenSearchClusterFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			_, err := callAndPrint(cmd, q, opensearchv1connect.OpenSearchServiceClient.ListMappings, &opensearchv1.ListMappingsRequest{Cluster: of},
				report.Printer.WriteOpenSearchMappings)
			return err
		}
		_, err := callAndPrint(cmd, q, opensearchv1connect.OpenSearchServiceClient.ExplainMapping,
			&opensearchv1.ExplainMappingRequest{Cluster: of, Role: args[0]},
			report.Printer.WriteMappingExplanation)
		return err
	}
	return cmd
}

func newOpenSearchStatusCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show how many objects of a cluster are in each state",
		Example: "  entail opensearch status\n  entail opensearch status -n team-a --cluster logs",
		Args:    cobra.NoArgs,
	}
	q, of := newOpenSearchCall(cmd, around), bindOpenSearchClusterFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		_, err := callAndPrint(cmd, q, opensearchv1connect.OpenSearchServiceClient.GetSyncStatus, &opensearchv1.GetSyncStatusRequest{Cluster: of},
			report.Printer.WriteOpenSearchStatus)
		return err
	}
	return cmd
}
