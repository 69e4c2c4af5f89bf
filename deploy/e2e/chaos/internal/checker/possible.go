package checker

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// possible is everything that some state of the objects since the last rest could grant, taken
// together: what is not in it was revoked, and settled. Nothing here takes anything away, and
// neither do the models and rules of the workload, so more objects never grant less.
type possible struct {
	// tuples are those that were declared, by Store.
	tuples map[string]map[Tuple]bool
	// computed are the relations that give another, by Store and type#relation.
	computed map[string]map[string]map[string]bool
	// bound are the roles that people were bound to, as namespace/person.
	bound map[string]map[string]bool
	rules rules
	// access is who may do what in IAM.
	access *possibleAccess
}

func newPossible() *possible {
	return &possible{
		tuples: map[string]map[Tuple]bool{}, computed: map[string]map[string]map[string]bool{},
		bound: map[string]map[string]bool{}, rules: rules{}, access: newPossibleAccess(),
	}
}

// add takes one state of an object into account.
func (p *possible) add(kind string, o unstructured.Unstructured) {
	p.access.add(kind, o)
	switch kind {
	case workload.Stores().Resource:
		p.addModule(o.GetName(), field(o, "spec", "coreModule"), o)
		p.addModule(o.GetName(), field(o, "status", "live", "coreModule"), o)
	case workload.AuthorizationModels().Resource:
		p.addModule(field(o, "spec", "storeRef", "name"), field(o, "spec", "model"), o)
		p.addModule(field(o, "spec", "storeRef", "name"), field(o, "status", "live", "model"), o)
	case workload.ImpliedRoles().Resource:
		p.rules.add(o)
	case workload.RoleBindings().Resource:
		if explicit(o) {
			for _, who := range subjects(o) {
				set(p.bound, o.GetNamespace()+"/"+who, field(o, "roleRef", "name"))
			}
		}
	}
}

// keep goes on taking for possible what was so in a Store.
func (p *possible) keep(before *possible, store string) {
	p.tuples[store], p.computed[store] = before.tuples[store], before.computed[store]
}

// set adds to a set that may not be there yet.
func set[K, V comparable](sets map[K]map[V]bool, key K, value V) {
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

func (p *possible) addModule(store, text string, owner unstructured.Unstructured) {
	for _, t := range tuplesOf(owner, "spec", "tuples") {
		set(p.tuples, store, t)
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
			set(p.computed[store], of+"#"+relation[1], m[1])
		}
	}
}

// declared reports whether somebody declared the tuple.
func (p *possible) declared(store string, t Tuple) bool {
	if store == workload.IAMStore {
		return p.access.holds(t)
	}
	return p.tuples[store][t]
}

// allows reports whether a question may be answered with yes.
func (p *possible) allows(store string, q Tuple) bool {
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

// holds reports whether a person may have a role.
func (p *possible) holds(namespace, person, role string) bool {
	roles := p.bound[namespace+"/"+person]
	if roles[role] {
		return true
	}
	for bound := range roles {
		if slices.Contains(p.rules.implied(namespace, bound), role) {
			return true
		}
	}
	return false
}
