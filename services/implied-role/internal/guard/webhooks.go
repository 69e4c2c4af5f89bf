package guard

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

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
// server made for itself, and what is ours, implies nothing, as long as its labels say so. Each subject
// that there is to be is compared with each that there was: of very many [gains] tells.
const somebodyGains = `oldObject == null || !has(oldObject.subjects) ||
has(object.subjects) && (size(object.subjects) * size(oldObject.subjects) > 10000 || object.subjects.exists(s, !(s in oldObject.subjects))) ||
oldObject.metadata.?labels[?'kubernetes.io/bootstrapping'].hasValue() && !object.metadata.?labels[?'kubernetes.io/bootstrapping'].hasValue() ||
object.metadata.?labels[?'` + infer.IndependentLabel + `'].orValue('') != oldObject.metadata.?labels[?'` + infer.IndependentLabel + `'].orValue('')`

// rulesWebhook covers all namespaces, and whoever writes: where a rule is made, the other webhook is
// extended to before.
func rulesWebhook() admissionregistrationv1.ValidatingWebhook {
	w := webhook(kinds.ImpliedRoles(), admissionregistrationv1.MatchCondition{
		Name: "the-rule-is-new", Expression: "oldObject == null || object.spec != oldObject.spec",
	})
	noneOnDryRun := admissionregistrationv1.SideEffectClassNoneOnDryRun
	w.SideEffects = &noneOnDryRun
	return w
}

func bindingsWebhook() admissionregistrationv1.ValidatingWebhook {
	return webhook(kinds.RoleBindings(), admissionregistrationv1.MatchCondition{Name: "somebody-gains", Expression: somebodyGains},
		admissionregistrationv1.MatchCondition{Name: "not-whoever-may-bind-everything", Expression: notAlmighty})
}

func webhook(kind kinds.Kind, conditions ...admissionregistrationv1.MatchCondition) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: kind.Resource + "." + kinds.ImpliedRoles().Group,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{kind.Group}, APIVersions: []string{"*"}, Resources: []string{kind.Resource}},
		}},
		MatchConditions: conditions,
	}
}

// ruleResource is where rules are.
func ruleResource() event.GroupResource { return kinds.ImpliedRoles().GroupResource }
