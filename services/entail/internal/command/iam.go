package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/report"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/rbac"
)

func newIAMCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{Use: "iam", Short: "Show protected kinds and their model"}
	cmd.AddCommand(newIAMKindsCommand(around), newIAMModelCommand(around), newIAMObserveCommand(around), newIAMAdoptCommand(around),
		newIAMLostCommand(around))
	return cmd
}

func newIAMKindsCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "kinds",
		Short:   "List protected kinds with their permissions and parents",
		Example: "  entail iam kinds",
		Args:    cobra.NoArgs,
	}
	q := newAccessCall(cmd, around)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		all, err := dialAndListProtected(cmd, q)
		if err != nil {
			return err
		}
		return q.printAnswer(cmd.OutOrStdout(), all, func(p report.Printer) { p.WriteProtectedResources(all) })
	}
	return cmd
}

// dialAndListProtected returns all protected kinds.
func dialAndListProtected(cmd *cobra.Command, q *apiCall[accessv1connect.AccessServiceClient]) (*accessv1.ListProtectedResourcesResponse, error) {
	client, err := newAPIClient(&q.connection, q.client)
	if err != nil {
		return nil, err
	}
	return listProtectedResources(cmd.Context(), client)
}

func newIAMModelCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "model",
		Short:   "Show the size of the IAM model, and whether OpenFGA has it",
		Example: "  entail iam model\n  entail iam model -o json",
		Args:    cobra.NoArgs,
	}
	q := newAccessCall(cmd, around)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		_, err := callAndPrint(cmd, q, accessv1connect.AccessServiceClient.GetModelStatus, &accessv1.GetModelStatusRequest{},
			report.Printer.WriteIAMModelStatus)
		return err
	}
	return cmd
}

func newIAMObserveCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "observe",
		Short: "Print the rights that Entail needs to follow objects of protected kinds",
		Long: `observe prints one ClusterRole for each protected kind. With it the watcher may follow the names and owners of the objects,
but not their content. Without it, bindings on single objects of the kind give nothing. The kinds of IAM need no such role.`,
		Example: "  entail iam observe | kubectl apply -f -",
		Args:    cobra.NoArgs,
	}
	q := newAccessCall(cmd, around)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		all, err := dialAndListProtected(cmd, q)
		if err != nil {
			return err
		}
		var of []event.GroupResource
		for _, p := range all.GetResources() {
			spec := iamv1alpha1.ProtectedResourceSpec{Plural: p.GetPlural()}
			spec.ServiceRef.Name, _, _ = strings.Cut(p.GetType(), "/")
			if target := iam.TargetResource(spec); !iam.IsIAMResource(target) {
				of = append(of, target)
			}
		}
		manifest, err := rbac.TargetRolesManifest(of)
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(manifest)
		return err
	}
	return cmd
}

func newIAMAdoptCommand(around IOStreams) *cobra.Command {
	var (
		limit int
		dry   bool
	)
	cmd := &cobra.Command{
		Use:   "adopt --dry-run",
		Short: "List the tuples that taking over the IAM store would delete",
		Long: `adopt reads the OpenFGA store of the Store iam. It lists the tuples of IAM's types (with a / in the name) that no object
declares. It changes nothing. To take the store over, set spec.adoption: Always on the Store.`,
		Example: "  entail iam adopt --dry-run\n  entail iam adopt --dry-run -o json",
		Args:    cobra.NoArgs,
	}
	q := newTupleCall(cmd, around)
	bindLimitFlag(cmd, &limit, defaultTuples, "stop after this many tuples")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "required: the command only lists")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !dry {
			return fmt.Errorf("%w: give --dry-run; to take the store over, set spec.adoption: Always on its Store", exit.ErrUsage)
		}
		client, err := newAPIClient(&q.connection, q.client)
		if err != nil {
			return err
		}
		all := &tuplev1.PreviewAdoptionResponse{}
		tuples, next, err := collectPages(limit, func(_ int32, token string) ([]*tuplev1.PreviewAdoptionResponse_Tuple, string, error) {
			page, err := client.PreviewAdoption(cmd.Context(), &tuplev1.PreviewAdoptionRequest{PageSize: maxPage, PageToken: token})
			if err == nil {
				all = page
			}
			return page.GetTuples(), page.GetNextPageToken(), err
		})
		if err != nil {
			return err
		}
		all.Tuples, all.NextPageToken = tuples, next
		return q.printAnswer(cmd.OutOrStdout(), all, func(p report.Printer) { p.WriteAdoptionPreview(all) })
	}
	return cmd
}
