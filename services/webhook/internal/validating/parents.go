package validating

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/entail-dev/entail/services/internal/admission"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

const (
	// maxChildren bounds the kinds that the webhook names: as many as the watcher follows. maxNamed bounds its
	// condition, in bytes, because the API server compiles no more than 100,000 characters.
	maxChildren = 256
	maxNamed    = 64 << 10
)

// Conditions for a new owner. They exempt users that may escalate on all objects of the owner's kind, or on everything
// if the owners have several kinds.
const (
	getsAParent = `object != null && oldObject != null &&
object.?metadata.?ownerReferences.orValue([]) != oldObject.?metadata.?ownerReferences.orValue([]) &&
[{%s}].exists(parents, [object.?metadata.?ownerReferences.orValue([]).filter(o,
o.apiVersion.find('^[^/]+/') + o.kind in parents && !oldObject.?metadata.?ownerReferences.orValue([]).exists(b,
b.apiVersion == o.apiVersion && b.kind == o.kind && b.name == o.name && b.uid == o.uid)).map(o,
parents[o.apiVersion.find('^[^/]+/') + o.kind])].exists(given, size(given) > 0 && !(given.all(p, p == given[0]) ?
authorizer.group(given[0][0]).resource(given[0][1]).check('escalate').allowed() :
authorizer.group('*').resource('*').check('escalate').allowed())))`
	getsAnOwner = `object != null && oldObject != null && object.?metadata.?ownerReferences.orValue([]).exists(o,
!oldObject.?metadata.?ownerReferences.orValue([]).exists(b,
b.apiVersion == o.apiVersion && b.kind == o.kind && b.name == o.name && b.uid == o.uid))`
	notWhoEscalatesAll = `!authorizer.group('*').resource('*').check('escalate').allowed()`
)

// registeredParentsWebhook returns the webhook for objects of other groups that get an owner of a registered parent kind.
func (g *Validator) registeredParentsWebhook() admission.Webhook {
	return admission.Webhook{
		ValidatingWebhook: admissionregistrationv1.ValidatingWebhook{Name: "parents.iam.miloapis.com"},
		Validate:          newAddedOwnersValidator(g, objectTarget, "kind, all of it, or on everything if there are owners of several kinds"),
		RulesFunc:         g.currentParentRules,
	}
}

// currentParentRules implements [admission.WebhookRulesFunc] by the registered kinds. It changes nothing while these are unknown.
func (g *Validator) currentParentRules(
	ctx context.Context, rules []admissionregistrationv1.RuleWithOperations, conditions []admissionregistrationv1.MatchCondition,
) ([]admissionregistrationv1.RuleWithOperations, []admissionregistrationv1.MatchCondition) {
	source := g.source.Load()
	if source == nil {
		return rules, conditions
	}
	x, err := source.Index(ctx)
	if err != nil {
		return rules, conditions
	}
	return parentKindRules(x.Registry().Kinds())
}

// parentKindRules returns rules and conditions that name the kinds with parents, and the parents. It leaves out organizations and
// projects, which [Validator.otherKindsWebhook] covers for every kind. If the kinds are too many to name, the rules match every
// kind.
func parentKindRules(all []*iam.RegisteredKind) ([]admissionregistrationv1.RuleWithOperations, []admissionregistrationv1.MatchCondition) {
	var rules []admissionregistrationv1.RuleWithOperations
	named := map[string]struct{}{}
	for _, k := range all {
		of := iam.TargetResource(k.Resource.Spec)
		if iam.IsIAMResource(of) {
			continue
		}
		above := parentMapEntries(k.Parents)
		for _, name := range above {
			named[name] = struct{}{}
		}
		if len(above) > 0 {
			rules = append(rules, newUpdateRule(of.Group, of.Resource, of.Resource+"/*"))
		}
	}
	if len(rules) == 0 {
		return nil, nil
	}
	condition := admissionregistrationv1.MatchCondition{
		Name: "it-may-give-something", Expression: fmt.Sprintf(getsAParent, strings.Join(slices.Sorted(maps.Keys(named)), ",\n")),
	}
	if len(rules) > maxChildren || len(condition.Expression) > maxNamed {
		rules, condition = []admissionregistrationv1.RuleWithOperations{newUpdateRule("*", "*/*")}, joinConditions(getsAnOwner, notWhoEscalatesAll)
	}
	return rules, []admissionregistrationv1.MatchCondition{condition}
}

// parentMapEntries returns entries of a map from kind names in owner references to API resources. A kind of the core group has
// two names.
func parentMapEntries(parents []*iam.RegisteredKind) (names []string) {
	for _, k := range parents {
		of := iam.TargetResource(k.Resource.Spec)
		if of.Group == resourcemanagerv1alpha1.GroupVersion.Group {
			continue
		}
		names = append(names, fmt.Sprintf("'%s': ['%s', '%s']", k.Type, of.Group, of.Resource))
		if of.Group == "" {
			names = append(names, fmt.Sprintf("'%s': ['', '%s']", k.Resource.Spec.Kind, of.Resource))
		}
	}
	return names
}
