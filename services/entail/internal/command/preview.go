package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/report"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// errRefused makes a preview fail if a rule would not be accepted.
var errRefused = errors.New("some rules would not be accepted")

// ownRightHelp is the help for [kubeconfigCluster.checkByDryRun].
const ownRightHelp = `The command writes nothing. It also asks the API server of your kubeconfig whether you may make each change.
The exit code is 1 if the API server would refuse one.`

func newPreviewCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{Use: "preview", Short: "Preview a change; nothing is written"}
	cmd.AddCommand(newPreviewRulesCommand(around), newPreviewBindingCommand(around), newPreviewPolicyBindingCommand(around))
	return cmd
}

func newPreviewRulesCommand(around IOStreams) *cobra.Command {
	var (
		namespace, file string
		remove          []string
	)
	cmd := &cobra.Command{
		Use:     "rules",
		Short:   "Preview which subjects would gain or lose roles by new, changed and removed rules",
		Long:    "Preview which subjects would gain or lose roles by new, changed and removed rules.\n\n" + ownRightHelp,
		Example: "  entail preview rules -f rules.yaml\n  entail preview rules -n team-a --remove admin-writer",
		Args:    cobra.NoArgs,
	}
	q := newInferenceCall(cmd, around)
	bindNamespaceFlag(cmd, around.Getenv, &namespace, "namespace of the rules, unless the file names one")
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with new or changed ImpliedRoles; - is standard input")
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "`name` of a rule to remove; separate several by commas")
	registerFlagCompletion(cmd, "remove", kubeconfigCluster{around.Getenv}.objectNameCompleter(kinds.ImpliedRoles(), &namespace).completeArgument)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		request, err := readPreviewRulesRequest(cmd.InOrStdin(), file, namespace, cmd.Flags().Changed("namespace"))
		if err != nil {
			return fmt.Errorf("%w: %w", exit.ErrUsage, err)
		}
		for _, name := range remove {
			request.Changes = append(request.Changes, &inferencev1.RuleChange{Name: name, Remove: true})
		}
		if len(request.GetChanges()) == 0 {
			return fmt.Errorf("%w: nothing to preview: give rules by -f or names by --remove", exit.ErrUsage)
		}
		answer, err := callAndPrint(cmd, q, inferencev1connect.InferenceServiceClient.PreviewRules, request,
			func(p report.Printer, m *inferencev1.PreviewRulesResponse) { p.WriteRolePreview(m.GetPreview()) })
		if len(answer.GetPreview().GetRefusals()) > 0 {
			err = errors.Join(err, errRefused)
		}
		if answer.GetPreview() == nil {
			return err
		}
		err = errors.Join(err, kubeconfigCluster{around.Getenv}.checkByDryRun(cmd, request.GetNamespace(), toRuleWrites(request)))
		return cmp.Or(err, truncatedError(answer.GetPreview(), nil))
	}
	return cmd
}

// toRuleWrites returns the writes that the request previews.
func toRuleWrites(request *inferencev1.PreviewRulesRequest) []dryRunWrite {
	writes := make([]dryRunWrite, len(request.GetChanges()))
	for i, c := range request.GetChanges() {
		writes[i] = dryRunWrite{kind: kinds.ImpliedRoles(), name: c.GetName(), remove: c.GetRemove(), fields: map[string]any{
			"spec": map[string]any{"inference_rule": map[string]any{
				"parent_role": c.GetParent().GetName(), "parent_kind": cmp.Or(c.GetParent().GetKind(), "Role"),
				"child_role": c.GetChild().GetName(), "child_kind": cmp.Or(c.GetChild().GetKind(), "Role"),
			}},
		}}
	}
	return writes
}

// readPreviewRulesRequest returns the request for the rules in a file. All rules must be in one namespace; with only, in the
// given one.
func readPreviewRulesRequest(in io.Reader, file, namespace string, only bool) (*inferencev1.PreviewRulesRequest, error) {
	request := &inferencev1.PreviewRulesRequest{}
	if only {
		request.Namespace = namespace
	}
	rules, err := readManifestObjects[rolev1alpha1.ImpliedRoles](in, file, kinds.ImpliedRoles(), "rules")
	if errors.Is(err, errNotNamed) {
		err = fmt.Errorf("%w: that is one rule of one namespace, and there are no others", err)
	}
	if err != nil {
		return nil, err
	}
	for _, rule := range rules {
		own := cmp.Or(rule.Namespace, namespace)
		if request.Namespace = cmp.Or(request.GetNamespace(), own); request.GetNamespace() != own {
			return nil, fmt.Errorf("rule %s belongs to namespace %s, others to %s: preview one namespace at a time", rule.Name, own, request.GetNamespace())
		}
		says := rule.Spec.InferenceRule
		request.Changes = append(request.Changes, &inferencev1.RuleChange{
			Name:   rule.Name,
			Parent: &inferencev1.Role{Kind: says.ParentKind, Name: says.ParentRole},
			Child:  &inferencev1.Role{Kind: says.ChildKind, Name: says.ChildRole},
		})
	}
	request.Namespace = cmp.Or(request.GetNamespace(), namespace)
	return request, nil
}
