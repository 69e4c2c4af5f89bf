package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/report"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// maxReasons is the largest number of paths that the API returns.
const maxReasons = 100

func newInferencesCommand(around IOStreams) *cobra.Command {
	var (
		namespace string
		tree      bool
	)
	cmd := &cobra.Command{
		Use:     "inferences",
		Short:   "List the roles that each role implies",
		Example: "  entail inferences -n team-a\n  entail inferences -A --tree",
		Args:    cobra.NoArgs,
	}
	cmd.AddCommand(newDriftCommand(around), newWatchCommand(around))
	q := newInferenceCall(cmd, around)
	bindNamespaceFlags(cmd, around.Getenv, &namespace, "only this namespace")
	cmd.Flags().BoolVar(&tree, "tree", false, "draw the roles as a tree of rules")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := newAPIClient(&q.connection, q.client)
		if err != nil {
			return err
		}
		all, err := listInferences(cmd.Context(), client, namespace)
		if err != nil {
			return err
		}
		table := report.Printer.WriteInferences
		if tree {
			table = report.Printer.WriteInferenceTree
		}
		return q.printAnswer(cmd.OutOrStdout(), all, func(p report.Printer) {
			table(p, all)
			if len(all.GetInferences()) == 0 && namespace != "" {
				_, _ = fmt.Fprintf(p.Out, "This answer is for namespace %s; -A includes all namespaces.\n", namespace)
			}
		})
	}
	return cmd
}

// listInferences reads all pages.
func listInferences(
	ctx context.Context, client inferencev1connect.InferenceServiceClient, namespace string,
) (*inferencev1.ListInferencesResponse, error) {
	all := &inferencev1.ListInferencesResponse{}
	return all, readEveryPage(func(token string) (next string, have int, err error) {
		page, err := client.ListInferences(ctx, &inferencev1.ListInferencesRequest{Namespace: namespace, PageSize: pageSize, PageToken: token})
		all.Inferences = append(all.GetInferences(), page.GetInferences()...)
		all.Revision, all.Synced = page.GetRevision(), page.GetSynced()
		return page.GetNextPageToken(), len(all.GetInferences()), err
	})
}

func newExplainCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{Use: "explain", Short: "Explain why a subject has access or a role, or why a RoleBinding exists"}
	cmd.AddCommand(newExplainRoleBindingCommand(around), newExplainRoleCommand(around), newExplainAccessCommand(around))
	return cmd
}

func newExplainRoleBindingCommand(around IOStreams) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:     "rolebinding NAME",
		Short:   "Explain which rules created a RoleBinding, or which roles follow from it",
		Example: "  entail explain rolebinding alice-admin -n team-a",
		Args:    cobra.ExactArgs(1),
	}
	q := newInferenceCall(cmd, around)
	bindNamespaceFlag(cmd, around.Getenv, &namespace, "namespace of the RoleBinding")
	completeFirstArgument(cmd, kubeconfigCluster{around.Getenv}.objectNameCompleter(kinds.RoleBindings(), &namespace))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		answer, err := callAndPrint(cmd, q, inferencev1connect.InferenceServiceClient.ExplainBinding, &inferencev1.ExplainBindingRequest{
			Namespace: namespace, Name: args[0], MaxPaths: maxReasons,
		}, report.Printer.WriteBindingExplanation)
		return truncatedError(answer, err)
	}
	return cmd
}

func newWhoHasCommand(around IOStreams) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:     "who-has ROLE",
		Short:   "List the subjects that have a role, by a RoleBinding or an implied role",
		Example: "  entail who-has writer -n team-a\n  entail who-has clusterrole/view -n team-a",
		Args:    cobra.ExactArgs(1),
	}
	q := newInferenceCall(cmd, around)
	bindNamespaceFlag(cmd, around.Getenv, &namespace, "namespace of the roles and RoleBindings")
	completeFirstArgument(cmd, kubeconfigCluster{around.Getenv}.roleNameCompleter(&namespace))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		role, err := parseRole(args[0])
		if err != nil {
			return err
		}
		client, err := newAPIClient(&q.connection, q.client)
		if err != nil {
			return err
		}
		all, err := listRoleHolders(cmd.Context(), client, namespace, role)
		if err != nil {
			return err
		}
		return q.printAnswer(cmd.OutOrStdout(), all, func(p report.Printer) {
			p.WriteRoleHolders(&inferencev1.WhoHasRoleRequest{Namespace: namespace, Role: role}, all)
		})
	}
	return cmd
}

func listRoleHolders(
	ctx context.Context, client inferencev1connect.InferenceServiceClient, namespace string, role *inferencev1.Role,
) (*inferencev1.WhoHasRoleResponse, error) {
	all := &inferencev1.WhoHasRoleResponse{}
	return all, readEveryPage(func(token string) (next string, have int, err error) {
		request := &inferencev1.WhoHasRoleRequest{Namespace: namespace, Role: role, PageSize: pageSize, PageToken: token}
		page, err := client.WhoHasRole(ctx, request)
		all.Holders = append(all.GetHolders(), page.GetHolders()...)
		all.Revision, all.Synced, all.RoleMissing, all.Considered = page.GetRevision(), page.GetSynced(), page.GetRoleMissing(), page.GetConsidered()
		return page.GetNextPageToken(), len(all.GetHolders()), err
	})
}

const (
	pageSize = 500
	// maxRows bounds the rows that one command reads.
	maxRows = 50_000
	// maxPages bounds the requests of one command, because a page may hold fewer rows than requested.
	maxPages = 10_000
)

// readEveryPage calls ask until no page follows, or there are too many rows. ask returns the number of rows so far.
func readEveryPage(ask func(token string) (next string, have int, err error)) error {
	token := ""
	for range maxPages {
		next, have, err := ask(token)
		if err != nil || next == "" {
			return err
		}
		if have >= maxRows {
			break
		}
		token = next
	}
	return fmt.Errorf("%w: there are more than %d rows: ask about less, or ask the API page by page", exit.ErrUsage, maxRows)
}

// parseRole reads NAME for a Role, or clusterrole/NAME.
func parseRole(argument string) (*inferencev1.Role, error) {
	kind, name, ok := strings.Cut(argument, "/")
	if !ok {
		kind, name = "role", argument
	}
	kinds := map[string]string{"role": "Role", "clusterrole": "ClusterRole"}
	role := &inferencev1.Role{Kind: kinds[strings.ToLower(kind)], Name: name}
	if role.GetKind() == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%w: %q is neither a role's NAME nor clusterrole/NAME", exit.ErrUsage, argument)
	}
	return role, nil
}
