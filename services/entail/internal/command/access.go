package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/report"
	"github.com/entail-dev/entail/services/internal/kinds"
)

const subjectHelp = "A SUBJECT is a user's NAME, or user:NAME, group:NAME or serviceaccount:[NAMESPACE/]NAME."

func newExplainRoleCommand(around IOStreams) *cobra.Command {
	var (
		namespace, who string
		groups         []string
	)
	cmd := &cobra.Command{
		Use:     "role ROLE --for SUBJECT",
		Short:   "Explain why a subject has a role: by which RoleBindings and rules",
		Long:    "Explain why a subject has a role: by which RoleBindings and rules.\n\n" + subjectHelp,
		Example: "  entail explain role writer --for alice -n team-a\n  entail explain role clusterrole/view --for serviceaccount:bot",
		Args:    cobra.ExactArgs(1),
	}
	q := newInferenceCall(cmd, around)
	bindNamespaceFlag(cmd, around.Getenv, &namespace, "namespace of the roles and RoleBindings")
	completeFirstArgument(cmd, kubeconfigCluster{around.Getenv}.roleNameCompleter(&namespace))
	cmd.Flags().StringVar(&who, "for", "", "`subject` to explain")
	registerFlagCompletion(cmd, "for", completeSubjectPrefix)
	// This cannot fail: the flag is defined above.
	_ = cmd.MarkFlagRequired("for")
	cmd.Flags().StringSliceVar(&groups, "group", nil, "`groups` of the subject; Kubernetes does not store them")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		role, err := parseRole(args[0])
		if err != nil {
			return err
		}
		subject, err := parseSubject(who)
		if err != nil {
			return err
		}
		request := &inferencev1.ExplainRoleRequest{Namespace: namespace, Subject: subject, Groups: groups, Role: role, MaxPaths: maxReasons}
		_, err = callAndPrint(cmd, q, inferencev1connect.InferenceServiceClient.ExplainRole, request,
			func(p report.Printer, m *inferencev1.ExplainRoleResponse) { p.WriteRoleExplanation(request, m) })
		return err
	}
	return cmd
}

func newWhatHasCommand(around IOStreams) *cobra.Command {
	var (
		namespace string
		groups    []string
	)
	cmd := &cobra.Command{
		Use:     "what-has SUBJECT",
		Short:   "List the roles that a subject has in a namespace",
		Long:    "List the roles that a subject has in a namespace.\n\n" + subjectHelp,
		Example: "  entail what-has alice -n team-a --group developers\n  entail what-has serviceaccount:bot -n team-a",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: completeSubjectPrefix,
	}
	q := newInferenceCall(cmd, around)
	bindNamespaceFlag(cmd, around.Getenv, &namespace, "namespace of the roles and RoleBindings")
	cmd.Flags().StringSliceVar(&groups, "group", nil, "`groups` of the subject; Kubernetes does not store them")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		subject, err := parseSubject(args[0])
		if err != nil {
			return err
		}
		request := &inferencev1.ListEffectiveRolesRequest{Namespace: namespace, Subject: subject, Groups: groups}
		answer, err := callAndPrint(cmd, q, inferencev1connect.InferenceServiceClient.ListEffectiveRoles, request,
			func(p report.Printer, m *inferencev1.ListEffectiveRolesResponse) { p.WriteEffectiveRoles(request, m) })
		return truncatedError(answer, err)
	}
	return cmd
}

func newPreviewBindingCommand(around IOStreams) *cobra.Command {
	var (
		namespace, role string
		subjects        []string
		remove          bool
	)
	cmd := &cobra.Command{
		Use:     "binding NAME",
		Short:   "Preview which subjects would gain or lose roles by a new, changed or removed RoleBinding",
		Long:    "Preview which subjects would gain or lose roles by a new, changed or removed RoleBinding.\n\n" + ownRightHelp + "\n\n" + subjectHelp,
		Example: "  entail preview binding alice -n team-a --role admin --subject alice\n  entail preview binding alice -n team-a --remove",
		Args:    cobra.ExactArgs(1),
	}
	q := newInferenceCall(cmd, around)
	bindNamespaceFlag(cmd, around.Getenv, &namespace, "namespace of the RoleBinding")
	completeFirstArgument(cmd, kubeconfigCluster{around.Getenv}.objectNameCompleter(kinds.RoleBindings(), &namespace))
	cmd.Flags().StringVar(&role, "role", "", "`role` of the RoleBinding")
	registerFlagCompletion(cmd, "role", kubeconfigCluster{around.Getenv}.roleNameCompleter(&namespace).completeArgument)
	cmd.Flags().StringSliceVar(&subjects, "subject", nil, "`subjects` of the RoleBinding")
	registerFlagCompletion(cmd, "subject", completeSubjectPrefix)
	cmd.Flags().BoolVar(&remove, "remove", false, "preview the deletion of the RoleBinding")
	cmd.MarkFlagsOneRequired("role", "remove")
	cmd.MarkFlagsMutuallyExclusive("role", "remove")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request, err := parseBindingRequest(role, subjects)
		if err != nil {
			return err
		}
		request.Namespace, request.Name, request.Remove = namespace, args[0], remove
		answer, err := callAndPrint(cmd, q, inferencev1connect.InferenceServiceClient.PreviewBinding, request,
			func(p report.Printer, m *inferencev1.PreviewBindingResponse) { p.WriteRolePreview(m.GetPreview()) })
		if err != nil {
			return err
		}
		refused := kubeconfigCluster{around.Getenv}.checkByDryRun(cmd, namespace, []dryRunWrite{toDryRunWrite(request)})
		return cmp.Or(refused, truncatedError(answer.GetPreview(), nil))
	}
	return cmd
}

// toDryRunWrite returns the write that the request previews.
func toDryRunWrite(r *inferencev1.PreviewBindingRequest) dryRunWrite {
	subjects := make([]any, len(r.GetSubjects()))
	for i, s := range r.GetSubjects() {
		subject := map[string]any{"kind": s.GetKind(), "name": s.GetName()}
		if s.GetKind() == rbacv1.ServiceAccountKind {
			subject["namespace"] = cmp.Or(s.GetNamespace(), r.GetNamespace())
		}
		subjects[i] = subject
	}
	role := map[string]any{"apiGroup": rbacv1.GroupName, "kind": cmp.Or(r.GetRole().GetKind(), "Role"), "name": r.GetRole().GetName()}
	return dryRunWrite{kind: kinds.RoleBindings(), name: r.GetName(), remove: r.GetRemove(), fields: map[string]any{"roleRef": role, "subjects": subjects}}
}

func parseBindingRequest(role string, subjects []string) (*inferencev1.PreviewBindingRequest, error) {
	request := &inferencev1.PreviewBindingRequest{}
	if role != "" {
		var err error
		if request.Role, err = parseRole(role); err != nil {
			return nil, err
		}
	}
	for _, text := range subjects {
		subject, err := parseSubject(text)
		if err != nil {
			return nil, err
		}
		request.Subjects = append(request.Subjects, subject)
	}
	return request, nil
}

// parseSubject reads the forms that subjectHelp lists. Answers name subjects in the same way. The name of a user may
// contain colons.
func parseSubject(argument string) (*inferencev1.Subject, error) {
	subject := &inferencev1.Subject{Kind: "User", Name: argument}
	for prefix, kind := range map[string]string{"user:": "User", "group:": "Group", "serviceaccount:": "ServiceAccount"} {
		if name, is := strings.CutPrefix(argument, prefix); is {
			subject.Kind, subject.Name = kind, name
		}
	}
	if namespace, name, of := strings.Cut(subject.GetName(), "/"); of && subject.GetKind() == "ServiceAccount" {
		subject.Namespace, subject.Name = namespace, name
	}
	if subject.GetName() == "" {
		return nil, fmt.Errorf("%w: %q is not a subject: use alice, group:developers or serviceaccount:bot", exit.ErrUsage, argument)
	}
	return subject, nil
}
