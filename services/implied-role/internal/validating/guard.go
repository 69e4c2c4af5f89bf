// Package validating answers admission webhooks for rules and RoleBindings. It refuses a write by which a role is given that
// its author could not bind directly. For every role that follows, the author needs the verb "bind" or all permissions
// of the role, as Kubernetes itself requires.
//
// The guard needs only the API server. It uses the informer for namespaces with many rules, and only while the informer
// is proven to hold all of them.
package validating

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/admission"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
)

// Validator holds the judges of the two webhooks.
type Validator struct {
	rules  *ruleSetReader
	rights *rightsReader
	scope  *namespaceCoverage
}

// New returns a guard that reads everything from the API server. See [Validator.UseInformer].
func New(cfg *rest.Config, policy infer.Policy) (*Validator, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating the client that reads rules and roles: %w", err)
	}
	typed, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating the client that reads rules and roles: %w", err)
	}
	rules := newRuleSetReader(objects, policy)
	return &Validator{rules: rules, rights: &rightsReader{kube: typed}, scope: newNamespaceCoverage(rules.listNamespacesWithRules, policy)}, nil
}

// Webhooks returns the webhooks to register at the API server.
func (g *Validator) Webhooks() []admission.Webhook {
	return []admission.Webhook{
		{ValidatingWebhook: rulesWebhook(), Validate: g.validateRule},
		{ValidatingWebhook: bindingsWebhook(), Validate: g.validateBinding, Scope: g.scope},
	}
}

// SetRefresh sets the function that registers the webhooks again after the scope has grown.
func (g *Validator) SetRefresh(refresh func(context.Context) error) { g.scope.refresh = refresh }

// EnsureNamespaceCovered returns nil if the webhook has covered the RoleBindings of a namespace for long enough. The API server needs
// [admission.RegistrationDelay] to notice a new scope. Cover extends the webhook to the namespace if necessary.
func (g *Validator) EnsureNamespaceCovered(ctx context.Context, namespace string) error {
	if err := g.scope.coverNamespace(ctx, namespace); err != nil {
		return err
	}
	return g.scope.checkPropagated(namespace)
}

// validateRule checks the author of a new or changed rule. It returns only after the webhook covers the RoleBindings of
// the namespace, so no unchecked binding can profit from the rule.
func (g *Validator) validateRule(ctx context.Context, request *admissionv1.AdmissionRequest) error {
	var object rolev1alpha1.ImpliedRoles
	if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
		return fmt.Errorf("decoding a rule: %w", err)
	}
	rule := state.ToInferRule(&object)
	if rule.Flaw != nil {
		return admission.InvalidError(request, field.ErrorList{field.Invalid(field.NewPath("spec", "inference_rule"), field.OmitValueType{},
			fmt.Sprintf("%s: correct parent_role and child_role", rule.Flaw))})
	}
	almighty, err := g.rights.canBindAll(ctx, request.UserInfo, request.Namespace)
	if err == nil && !almighty {
		err = g.validateRuleAuthor(ctx, request, rule)
	}
	if err != nil || request.DryRun != nil && *request.DryRun {
		return err
	}
	if err := g.scope.coverNamespace(ctx, request.Namespace); err != nil {
		return err
	}
	return g.scope.waitUntilPropagated(ctx, request.Namespace)
}

func (g *Validator) validateRuleAuthor(ctx context.Context, request *admissionv1.AdmissionRequest, rule infer.Rule) error {
	ruleSet, err := g.rules.currentRuleSet(ctx, request.Namespace)
	if err != nil {
		return err
	}
	roles := append([]infer.Role{rule.Child}, ruleSet.ImpliedRoles(rule.Child)...)
	return g.validateImpliedRoles(ctx, request, roles, func(child infer.Role) string {
		if child == rule.Child {
			return fmt.Sprintf("the rule gives %s to every holder of %s", roleText(child), roleText(rule.Parent))
		}
		return fmt.Sprintf("the rule gives %s with %s to every holder of %s", roleText(child), roleText(rule.Child), roleText(rule.Parent))
	})
}

// validateBinding checks the author of a new or changed RoleBinding.
func (g *Validator) validateBinding(ctx context.Context, request *admissionv1.AdmissionRequest) error {
	var binding, before infer.Binding
	if err := json.Unmarshal(request.Object.Raw, &binding); err != nil {
		return fmt.Errorf("decoding a RoleBinding: %w", err)
	}
	if was := request.OldObject.Raw; len(was) > 0 {
		if err := json.Unmarshal(was, &before); err != nil {
			return fmt.Errorf("decoding a RoleBinding as it was: %w", err)
		}
	}
	if request.Operation == admissionv1.Create && binding.Reserved {
		return admission.RefusalError(
			"names such as %s are reserved for RoleBindings of implied-role; choose another name, or add the label %s=true",
			binding.Name, infer.IndependentLabel)
	}
	if !canGainRole(before, binding) {
		return nil
	}
	ruleSet, err := g.rules.currentRuleSet(ctx, request.Namespace)
	if err != nil {
		return err
	}
	role := binding.Role
	return g.validateImpliedRoles(ctx, request, ruleSet.ImpliedRoles(role), func(child infer.Role) string {
		if path := ruleSet.ShortestPath(role, child); len(path) > 2 {
			return fmt.Sprintf("%s implies %s by way of %s", roleText(role), roleText(child), roleText(path[1]))
		}
		return fmt.Sprintf("%s implies %s", roleText(role), roleText(child))
	})
}

// canGainRole reports whether a subject may get a role by an update. This is so for a new subject, and for all subjects if
// the binding becomes a source.
func canGainRole(before, binding infer.Binding) bool {
	there := make(map[rbacv1.Subject]struct{}, len(before.Subjects))
	for _, s := range before.Subjects {
		there[s] = struct{}{}
	}
	return binding.IsSource() && !before.IsSource() || slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool {
		_, was := there[s]
		return !was
	})
}

// validateImpliedRoles refuses the request unless its author may bind all roles in follow.
func (g *Validator) validateImpliedRoles(ctx context.Context, request *admissionv1.AdmissionRequest, follow []infer.Role,
	because func(infer.Role) string,
) error {
	user := request.UserInfo
	left, err := g.rights.unbindableRoles(ctx, user, request.Namespace, follow)
	if err != nil || len(left) == 0 {
		return err
	}
	if len(left) > maxRoles {
		return admission.RefusalError("%s, and %d further roles follow, more than the %d that are checked one by one: "+
			`get the verb "bind" on all roles and clusterroles of namespace %s, or ask a user who has it`,
			because(left[0]), len(left)-1, maxRoles, request.Namespace)
	}
	return admission.RefusalError("%s, which %s may not bind in namespace %s: "+
		`get the verb "bind" on %s, or all that it permits, or ask a user who has that%s`,
		because(left[0]), user.Username, request.Namespace, roleResource(left[0])+"/"+left[0].Name, otherRolesText(len(left)-1))
}

func otherRolesText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (the same holds of %d further roles that follow)", n)
}

func roleText(r infer.Role) string { return r.Kind() + " " + r.Name }

func roleResource(r infer.Role) string {
	if r.Cluster {
		return "clusterroles"
	}
	return "roles"
}

// requestAuthor is the author of a request.
type requestAuthor = authenticationv1.UserInfo
