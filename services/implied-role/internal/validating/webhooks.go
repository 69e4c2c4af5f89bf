package validating

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Name is the name of the ValidatingWebhookConfiguration.
const Name = "entail-implied-role"

// notAlmighty exempts users that may bind every role: administrators, the garbage collector and this service. So the
// service never waits for its own webhook.
const notAlmighty = `!(authorizer.group('rbac.authorization.k8s.io').resource('roles').namespace(request.namespace).check('bind').allowed() &&
authorizer.group('rbac.authorization.k8s.io').resource('clusterroles').namespace(request.namespace).check('bind').allowed())`

// somebodyGains exempts updates by which no subject gets a role. The roleRef of a binding never changes. Bindings with
// the bootstrapping label and generated bindings imply nothing, so a change of these labels counts as a gain.
//
// The expression compares each new subject with each old one. For more than 10,000 pairs, [canGainRole] decides instead.
const somebodyGains = `oldObject == null || !has(oldObject.subjects) ||
has(object.subjects) && (size(object.subjects) * size(oldObject.subjects) > 10000 || object.subjects.exists(s, !(s in oldObject.subjects))) ||
oldObject.metadata.?labels[?'kubernetes.io/bootstrapping'].hasValue() && !object.metadata.?labels[?'kubernetes.io/bootstrapping'].hasValue() ||
object.metadata.?labels[?'` + infer.IndependentLabel + `'].orValue('') != oldObject.metadata.?labels[?'` + infer.IndependentLabel + `'].orValue('')`

// rulesWebhook returns the webhook of rules. It covers all namespaces and all users, because a new rule first extends
// the other webhook to its namespace.
func rulesWebhook() admissionregistrationv1.ValidatingWebhook {
	w := newWebhook(kinds.ImpliedRoles(), admissionregistrationv1.MatchCondition{
		Name: "the-rule-is-new", Expression: "oldObject == null || object.spec != oldObject.spec",
	})
	noneOnDryRun := admissionregistrationv1.SideEffectClassNoneOnDryRun
	w.SideEffects = &noneOnDryRun
	return w
}

func bindingsWebhook() admissionregistrationv1.ValidatingWebhook {
	return newWebhook(kinds.RoleBindings(), admissionregistrationv1.MatchCondition{Name: "somebody-gains", Expression: somebodyGains},
		admissionregistrationv1.MatchCondition{Name: "not-whoever-may-bind-everything", Expression: notAlmighty})
}

func newWebhook(kind kinds.Kind, conditions ...admissionregistrationv1.MatchCondition) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: kind.Resource + "." + kinds.ImpliedRoles().Group,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{kind.Group}, APIVersions: []string{"*"}, Resources: []string{kind.Resource}},
		}},
		MatchConditions: conditions,
	}
}

// impliedRolesResource returns the resource of rules.
func impliedRolesResource() event.GroupResource { return kinds.ImpliedRoles().GroupResource }
