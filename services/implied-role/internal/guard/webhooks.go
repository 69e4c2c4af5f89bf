package guard

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Name is that of the ValidatingWebhookConfiguration.
const Name = "entail-implied-role"

// notAlmighty keeps those from being judged who may bind everything anyway: administrators, garbage
// collection, and this service, which thus never waits for itself.
const notAlmighty = `!(authorizer.group('rbac.authorization.k8s.io').resource('roles').namespace(request.namespace).check('bind').allowed() &&
authorizer.group('rbac.authorization.k8s.io').resource('clusterroles').namespace(request.namespace).check('bind').allowed())`

// somebodyGains leaves out updates by which nobody gets anything: roleRef never changes. What the API
// server made for itself implies nothing, as long as it bears that label.
const somebodyGains = `oldObject == null || !has(oldObject.subjects) ||
has(object.subjects) && object.subjects.exists(s, !(s in oldObject.subjects)) ||
oldObject.metadata.?labels[?'kubernetes.io/bootstrapping'].hasValue() && !object.metadata.?labels[?'kubernetes.io/bootstrapping'].hasValue()`

func rulesWebhook(p infer.Policy) admissionregistrationv1.ValidatingWebhook {
	return webhook(kinds.ImpliedRoles(), p, admissionregistrationv1.MatchCondition{
		Name: "the-rule-is-new", Expression: "oldObject == null || object.spec != oldObject.spec",
	})
}

func bindingsWebhook(p infer.Policy) admissionregistrationv1.ValidatingWebhook {
	return webhook(kinds.RoleBindings(), p, admissionregistrationv1.MatchCondition{Name: "somebody-gains", Expression: somebodyGains})
}

// webhook covers a kind but in namespaces in which no rule holds.
func webhook(kind kinds.Kind, p infer.Policy, condition admissionregistrationv1.MatchCondition) admissionregistrationv1.ValidatingWebhook {
	w := admissionregistrationv1.ValidatingWebhook{
		Name: kind.Resource + "." + kinds.ImpliedRoles().Group,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{kind.Group}, APIVersions: []string{"*"}, Resources: []string{kind.Resource}},
		}},
		MatchConditions: []admissionregistrationv1.MatchCondition{condition, {Name: "not-whoever-may-bind-everything", Expression: notAlmighty}},
	}
	excluded := slices.Concat(p.Excluded, infer.Unguardable())
	slices.Sort(excluded)
	w.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: slices.Compact(excluded)},
	}}
	return w
}

// ruleResource is where rules are.
func ruleResource() event.GroupResource { return kinds.ImpliedRoles().GroupResource }
