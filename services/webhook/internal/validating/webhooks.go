package validating

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/entail-dev/entail/services/internal/admission"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Name is the name of the ValidatingWebhookConfiguration.
const Name = "entail-webhook"

// Conditions for the changes that each webhook checks. Subjects are compared one by one only in small lists, because
// the API server bounds the cost of a condition.
const (
	somebodyGains = `oldObject == null || (size(object.spec.subjects) * size(oldObject.spec.subjects) < 10000 ?
!object.spec.subjects.all(s, s in oldObject.spec.subjects) : object.spec.subjects != oldObject.spec.subjects)`
	specIsNew    = `has(object.spec) && (oldObject == null || object.?spec != oldObject.?spec)`
	ownersAreNew = `object.metadata.?ownerReferences.orValue([]) != oldObject.metadata.?ownerReferences.orValue([]) ||
object.?spec.?ownerRef != oldObject.?spec.?ownerRef`
	// Every other kind may be registered. Changes of its other owners must not require this service.
	othersGetAnOwner = `!(request.resource.resource + '.' + request.resource.group in [%s]) &&
object != null && oldObject != null && object.?metadata.?ownerReferences.orValue([]).exists(o,
o.apiVersion.startsWith('resourcemanager.miloapis.com/') && !oldObject.?metadata.?ownerReferences.orValue([]).exists(b,
b.apiVersion == o.apiVersion && b.kind == o.kind && b.name == o.name && b.uid == o.uid))`
)

// Conditions that exempt users with the verb escalate, which may give rights that they lack. The API server evaluates
// them and does not call the webhook for such users. So the first administrator of a cluster does not depend on this
// service.
const (
	notWhoEscalates = `!authorizer.group('iam.miloapis.com').resource('%s').namespace(%s).name(%s).check('escalate').allowed()`
	roleNamespace   = `object.spec.roleRef.?namespace.orValue('') == '' ? request.namespace : object.spec.roleRef.namespace`
	notWhoOwnsAll   = `!(authorizer.group('resourcemanager.miloapis.com').resource('organizations').check('escalate').allowed() &&
authorizer.group('resourcemanager.miloapis.com').resource('projects').check('escalate').allowed())`
)

// Webhooks returns the webhooks to register at the API server.
func (g *Validator) Webhooks() []admission.Webhook {
	escalates := func(resource, namespace, name string) string {
		return fmt.Sprintf(notWhoEscalates, resource, namespace, name)
	}
	all := []admission.Webhook{
		newKindWebhook(kinds.PolicyBindings(), g.validateBinding, somebodyGains, escalates("roles", roleNamespace, "object.spec.roleRef.name")),
		newKindWebhook(kinds.IAMRoles(), g.validateRole, specIsNew, escalates("roles", "request.namespace", "object.metadata.?name.orValue('')")),
		newKindWebhook(kinds.GroupMemberships(), g.validateMembership, specIsNew,
			escalates("groups", "object.spec.groupRef.namespace", "object.spec.groupRef.name")),
	}
	for _, kind := range kinds.IAMKinds() {
		judge := newAddedOwnersValidator(g, objectTarget, organizations)
		if kind.GroupResource == kinds.Projects().GroupResource {
			judge = newAddedOwnersValidator(g, projectTarget, organizations)
		}
		w := newKindWebhook(kind, judge, ownersAreNew, notWhoOwnsAll)
		w.Name = "owners." + w.Name
		w.Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
		all = append(all, w)
	}
	return append(all, g.otherKindsWebhook(), g.registeredParentsWebhook())
}

// organizations is the text of a refusal for the resources on which a user must have escalate.
const organizations = "organizations.resourcemanager.miloapis.com and projects, all of them"

// otherKindsWebhook returns the webhook for updates of other kinds that add an organization or a project as owner.
func (g *Validator) otherKindsWebhook() admission.Webhook {
	var ours []string
	for _, kind := range kinds.IAMKinds() {
		ours = append(ours, "'"+kind.Resource+"."+kind.Group+"'")
	}
	about := fmt.Sprintf(othersGetAnOwner, strings.Join(ours, ", "))
	return admission.Webhook{Validate: newAddedOwnersValidator(g, objectTarget, organizations), ValidatingWebhook: admissionregistrationv1.ValidatingWebhook{
		Name: "owners.iam.miloapis.com", Rules: []admissionregistrationv1.RuleWithOperations{newUpdateRule("*", "*/*")},
		MatchConditions: []admissionregistrationv1.MatchCondition{joinConditions(about, notWhoOwnsAll)},
	}}
}

// newUpdateRule returns a rule for updates of the resources, in any scope.
func newUpdateRule(group string, resources ...string) admissionregistrationv1.RuleWithOperations {
	everywhere := admissionregistrationv1.AllScopes
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources, Scope: &everywhere,
		},
	}
}

// joinConditions joins two conditions into one. The API server evaluates all conditions of a webhook. In a single one, it calls
// its authorizer only for updates to which the first part applies.
func joinConditions(about, who string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: "it-may-give-something", Expression: about + " &&\n" + who}
}

func newKindWebhook(kind kinds.Kind, judge admission.ValidateFunc, about, who string) admission.Webhook {
	scope := admissionregistrationv1.NamespacedScope
	if kind.ClusterScoped {
		scope = admissionregistrationv1.ClusterScope
	}
	return admission.Webhook{Validate: judge, ValidatingWebhook: admissionregistrationv1.ValidatingWebhook{
		Name: kind.Resource + "." + kind.Group,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{kind.Group}, APIVersions: []string{"*"}, Resources: []string{kind.Resource}, Scope: &scope,
			},
		}},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "it-may-give-something", Expression: about}, {Name: "not-who-may-escalate", Expression: who},
		},
	}}
}
