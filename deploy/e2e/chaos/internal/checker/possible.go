package checker

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// allowedSince is the union of all grants by the states of the objects since the last rest. Access outside of it was
// revoked, and the revocation had settled. A union suffices because no model or rule of the workload takes anything
// away: more objects never grant less.
type allowedSince struct {
	// tuples holds the declared tuples, by Store.
	tuples map[string]map[Tuple]bool
	// computed holds the relations that give another relation, by Store and type#relation.
	computed map[string]map[string]map[string]bool
	// bound holds the roles of people, by namespace/person.
	bound map[string]map[string]bool
	rules impliedRoleRules
	// access is the possible access in IAM.
	access *allowedAccess
}

func newAllowedSince() *allowedSince {
	return &allowedSince{
		tuples: map[string]map[Tuple]bool{}, computed: map[string]map[string]map[string]bool{},
		bound: map[string]map[string]bool{}, rules: impliedRoleRules{}, access: newAllowedAccess(),
	}
}

// addState adds the grants of one state of an object.
func (p *allowedSince) addState(kind string, o unstructured.Unstructured) {
	p.access.addState(kind, o)
	switch kind {
	case workload.StoreResource().Resource:
		p.addModule(o.GetName(), textField(o, "spec", "coreModule"), o)
		p.addModule(o.GetName(), textField(o, "status", "live", "coreModule"), o)
	case workload.AuthorizationModelResource().Resource:
		p.addModule(textField(o, "spec", "storeRef", "name"), textField(o, "spec", "model"), o)
		p.addModule(textField(o, "spec", "storeRef", "name"), textField(o, "status", "live", "model"), o)
	case workload.ImpliedRolesResource().Resource:
		p.rules.addRule(o)
	case workload.RoleBindingResource().Resource:
		if isCreatedByUser(o) {
			for _, who := range subjectNames(o) {
				addToSet(p.bound, o.GetNamespace()+"/"+who, textField(o, "roleRef", "name"))
			}
		}
	}
}

// copyStoreFrom copies the grants of a Store from the set before.
func (p *allowedSince) copyStoreFrom(before *allowedSince, store string) {
	p.tuples[store], p.computed[store] = before.tuples[store], before.computed[store]
}

// addToSet adds a value to a set, and creates the set if necessary.
func addToSet[K, V comparable](sets map[K]map[V]bool, key K, value V) {
	if sets[key] == nil {
		sets[key] = map[V]bool{}
	}
	sets[key][value] = true
}

var (
	typeLine   = regexp.MustCompile(`^type (\S+)`)
	defineLine = regexp.MustCompile(`^\s+define (\S+):`)
	orRelation = regexp.MustCompile(` or (\w+)(?: from)?`)
)

func (p *allowedSince) addModule(store, text string, owner unstructured.Unstructured) {
	for _, t := range tuplesAtPath(owner, "spec", "tuples") {
		addToSet(p.tuples, store, t)
	}
	of := ""
	for line := range strings.Lines(text) {
		if m := typeLine.FindStringSubmatch(line); m != nil {
			of = m[1]
		}
		relation := defineLine.FindStringSubmatch(line)
		for _, m := range orRelation.FindAllStringSubmatch(line, -1) {
			if relation == nil || strings.HasSuffix(m[0], " from") {
				continue
			}
			if p.computed[store] == nil {
				p.computed[store] = map[string]map[string]bool{}
			}
			addToSet(p.computed[store], of+"#"+relation[1], m[1])
		}
	}
}

// isDeclared reports whether some state declared the tuple.
func (p *allowedSince) isDeclared(store string, t Tuple) bool {
	if store == workload.IAMStore {
		return p.access.mayHoldTuple(t)
	}
	return p.tuples[store][t]
}

// mayAllow reports whether the answer to a question may be yes.
func (p *allowedSince) mayAllow(store string, q Tuple) bool {
	of, _, _ := strings.Cut(q.Object, ":")
	seen := map[string]bool{}
	var follow func(relation string) bool
	follow = func(relation string) bool {
		if seen[relation] {
			return false
		}
		seen[relation] = true
		if p.tuples[store][Tuple{q.Object, relation, q.User}] {
			return true
		}
		for from := range p.computed[store][of+"#"+relation] {
			if follow(from) {
				return true
			}
		}
		return false
	}
	return follow(q.Relation)
}

// mayHoldRole reports whether a person may have a role.
func (p *allowedSince) mayHoldRole(namespace, person, role string) bool {
	roles := p.bound[namespace+"/"+person]
	if roles[role] {
		return true
	}
	for bound := range roles {
		if slices.Contains(p.rules.impliedRoles(namespace, bound), role) {
			return true
		}
	}
	return false
}
