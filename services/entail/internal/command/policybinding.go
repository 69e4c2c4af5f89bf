package command

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/report"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func newPreviewPolicyBindingCommand(around IOStreams) *cobra.Command {
	var namespace, file string
	cmd := &cobra.Command{
		Use:     "policybinding -f FILE",
		Short:   "Preview which permissions a PolicyBinding would add",
		Example: "  entail preview policybinding -f binding.yaml",
		Args:    cobra.NoArgs,
	}
	q := newAccessCall(cmd, around)
	bindNamespaceFlag(cmd, around.Getenv, &namespace, "namespace of the PolicyBinding, unless the file names one")
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with one PolicyBinding; - is standard input")
	_ = cmd.MarkFlagRequired("filename") // This cannot fail: the flag is defined above.
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		bindings, err := readManifestObjects[iamv1alpha1.PolicyBinding](cmd.InOrStdin(), file, kinds.PolicyBindings(), "bindings")
		if err == nil && len(bindings) != 1 {
			err = fmt.Errorf("%d PolicyBindings: preview one at a time", len(bindings))
		}
		if err != nil {
			return fmt.Errorf("%w: %w", exit.ErrUsage, err)
		}
		request, err := newPolicyBindingRequest(&bindings[0], namespace)
		if err != nil {
			return err
		}
		_, err = callAndPrint(cmd, q, accessv1connect.AccessServiceClient.PreviewBinding, request, report.Printer.WriteBindingGains)
		return err
	}
	return cmd
}

func newPolicyBindingRequest(b *iamv1alpha1.PolicyBinding, namespace string) (*accessv1.PreviewBindingRequest, error) {
	request := &accessv1.PreviewBindingRequest{
		Namespace: cmp.Or(b.Namespace, namespace),
		Role:      &accessv1.Name{Namespace: b.Spec.RoleRef.Namespace, Name: b.Spec.RoleRef.Name},
	}
	for _, s := range b.Spec.Subjects {
		request.Subjects = append(request.Subjects, &accessv1.BindingSubject{Kind: s.Kind, Name: s.Name, Namespace: s.Namespace, Uid: s.UID})
	}
	object, all := b.Spec.ResourceSelector.ResourceRef, b.Spec.ResourceSelector.ResourceKind
	switch {
	case object != nil && all == nil && object.Name != "":
		request.Target = &accessv1.Target{ApiGroup: object.APIGroup, Kind: object.Kind, Namespace: object.Namespace, Name: object.Name, Uid: object.UID}
	case object == nil && all != nil:
		request.Target = &accessv1.Target{ApiGroup: all.APIGroup, Kind: all.Kind}
	default:
		return nil, fmt.Errorf("%w: PolicyBinding %s: resourceSelector takes a resourceRef with a name, or a resourceKind, and not both", exit.ErrUsage, b.Name)
	}
	return request, nil
}
