// Package state finds in the view what belongs together: the rules of a namespace and what
// they say, the bindings of a role, what was generated from which.
package state

import (
	"cmp"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
)

// Indexes of the tables. A role in a namespace is "namespace/role".
const (
	byNamespace = "namespace"
	// byChild finds rules by their child in a namespace; by a ClusterRole in every one.
	byChild = "child"
	// byRole finds bindings that people made, bySource those of them that imply others, byGrant
	// those that were generated.
	byRole   = "role"
	bySource = "source"
	byGrant  = "grant"
	// byOwner finds generated bindings by namespace and source, and all of them; byOrphan, by
	// namespace, those of which nothing tells the source.
	byOwner    = "owner"
	byOrphan   = "orphan"
	everywhere = "*"
)

type (
	// Rule is an ImpliedRoles.
	Rule = view.Object[rolev1alpha1.ImpliedRoles]
	// Binding is a RoleBinding or ClusterRoleBinding.
	Binding = view.Object[infer.Binding]
)

// State is the objects of one cluster.
type State struct {
	Cluster  string
	Policy   infer.Policy
	Rules    *view.Table[rolev1alpha1.ImpliedRoles]
	Bindings *view.Table[infer.Binding]

	clusterBindings     *view.Table[infer.Binding]
	roles, clusterRoles *view.Table[metav1.PartialObjectMetadata]

	mu       sync.Mutex
	ruleSets map[string]*cachedRuleSet
}

// New declares the tables in v, which must hold the objects of that cluster alone.
func New(v *view.View, cluster string, policy infer.Policy) *State {
	s := &State{
		Cluster: cluster, Policy: policy, ruleSets: map[string]*cachedRuleSet{},
		Rules: view.Register(v, kinds.ImpliedRoles(), map[string]func(*rolev1alpha1.ImpliedRoles) []string{
			byNamespace: func(r *rolev1alpha1.ImpliedRoles) []string { return []string{r.Namespace} },
			byChild:     func(r *rolev1alpha1.ImpliedRoles) []string { return []string{childIndex(r.Namespace, RuleOf(r).Child)} },
		}),
		Bindings: view.Register(v, kinds.RoleBindings(), map[string]func(*infer.Binding) []string{
			byNamespace: func(b *infer.Binding) []string { return []string{b.Namespace} },
			byRole: func(b *infer.Binding) []string {
				return only(!b.Generated(), in(b.Namespace, b.Role))
			},
			byGrant: func(b *infer.Binding) []string {
				return only(b.Generated(), in(b.Namespace, b.Role))
			},
			bySource: func(b *infer.Binding) []string {
				return only(b.IsSource(), in(b.Namespace, b.Role), b.Namespace)
			},
			byOwner: func(b *infer.Binding) []string {
				if b.Source == "" {
					return only(b.Generated(), everywhere)
				}
				return []string{b.Namespace + "/" + b.Source, everywhere}
			},
			byOrphan: func(b *infer.Binding) []string {
				return only(b.Generated() && b.Source == "", b.Namespace)
			},
		}),
		clusterBindings: view.Register(v, kinds.ClusterRoleBindings(), map[string]func(*infer.Binding) []string{
			byRole: func(b *infer.Binding) []string { return []string{b.Role.String()} },
		}),
		roles:        view.Register[metav1.PartialObjectMetadata](v, kinds.Roles(), nil),
		clusterRoles: view.Register[metav1.PartialObjectMetadata](v, kinds.ClusterRoles(), nil),
	}
	v.OnChange(s.changed)
	v.OnReload(s.reloaded)
	return s
}

func in(namespace string, r infer.Role) string { return namespace + "/" + r.String() }

func childIndex(namespace string, child infer.Role) string {
	if child.Cluster {
		return child.String()
	}
	return in(namespace, child)
}

// only is values if they apply.
func only(apply bool, values ...string) []string {
	if !apply {
		return nil
	}
	return values
}

// RuleOf is a rule as package infer takes it.
func RuleOf(r *rolev1alpha1.ImpliedRoles) infer.Rule {
	spec := r.Spec.InferenceRule
	parent, flaw := infer.ParseRole(spec.ParentKind, spec.ParentRole)
	child, other := infer.ParseRole(spec.ChildKind, spec.ChildRole)
	return infer.Rule{Name: r.Name, Created: r.CreationTimestamp.Time, Parent: parent, Child: child, Flaw: cmp.Or(flaw, other)}
}

// RulesIn lists the rules of a namespace, those included that are being deleted.
func (s *State) RulesIn(namespace string) []Rule { return s.Rules.By(byNamespace, namespace) }

// RuleCount counts the rules of a namespace.
func (s *State) RuleCount(namespace string) int { return s.Rules.Count(byNamespace, namespace) }

// Namespaces lists those that have rules, in order.
func (s *State) Namespaces() []string {
	return namespacesOf(s.Rules.All())
}

// NamespacesWithChild lists the namespaces with rules whose child a role is: one of the given
// namespace, or, when that is empty, a ClusterRole.
func (s *State) NamespacesWithChild(namespace, role string) []string {
	return namespacesOf(s.Rules.By(byChild, childIndex(namespace, infer.Role{Name: role, Cluster: namespace == ""})))
}

func namespacesOf(rules []Rule) []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.Key.Namespace)
	}
	return slices.Compact(names)
}

// Exists tells whether there is such a role in a namespace.
func (s *State) Exists(namespace string) func(infer.Role) bool {
	return func(r infer.Role) bool {
		key := event.Key{Cluster: s.Cluster, Name: r.Name}
		if r.Cluster {
			key.GroupResource = kinds.ClusterRoles().GroupResource
			_, ok := s.clusterRoles.Get(key)
			return ok
		}
		key.GroupResource, key.Namespace = kinds.Roles().GroupResource, namespace
		_, ok := s.roles.Get(key)
		return ok
	}
}

// BindingKey is the key of a RoleBinding.
func (s *State) BindingKey(namespace, name string) event.Key {
	return event.Key{Cluster: s.Cluster, GroupResource: kinds.RoleBindings().GroupResource, Namespace: namespace, Name: name}
}

// Binding finds a RoleBinding; nil if there is none.
func (s *State) Binding(namespace, name string) *infer.Binding {
	b, _ := s.Bindings.Get(s.BindingKey(namespace, name))
	return b.Value
}

// BindingsIn lists all of a namespace.
func (s *State) BindingsIn(namespace string) []*infer.Binding {
	return values(s.Bindings.By(byNamespace, namespace))
}

// Gone lists the rules and bindings of a namespace that have been deleted, as far as that is known.
func (s *State) Gone(namespace string) []event.Key {
	var keys []event.Key
	for _, r := range s.Rules.GoneBy(byNamespace, namespace) {
		keys = append(keys, r.Key)
	}
	for _, b := range s.Bindings.GoneBy(byNamespace, namespace) {
		keys = append(keys, b.Key)
	}
	return keys
}

// BindingCount counts the bindings of a namespace.
func (s *State) BindingCount(namespace string) int { return s.Bindings.Count(byNamespace, namespace) }

// BindingsTo lists those that people made to a role.
func (s *State) BindingsTo(namespace string, r infer.Role) []*infer.Binding {
	return values(s.Bindings.By(byRole, in(namespace, r)))
}

// BindingsEverywhere lists the ClusterRoleBindings, BindingsEverywhereTo those to a role.
func (s *State) BindingsEverywhere() []*infer.Binding { return values(s.clusterBindings.All()) }

// BindingsEverywhereTo is a part of [State.BindingsEverywhere].
func (s *State) BindingsEverywhereTo(r infer.Role) []*infer.Binding {
	return values(s.clusterBindings.By(byRole, r.String()))
}

// GeneratedTo lists those that were generated to a role.
func (s *State) GeneratedTo(namespace string, r infer.Role) []*infer.Binding {
	return values(s.Bindings.By(byGrant, in(namespace, r)))
}

// Orphans lists the names of the generated bindings of a namespace of which nothing tells the
// source, and of the sources that they follow from all the same.
func (s *State) Orphans(namespace string, rules *infer.RuleSet) []string {
	var names []string
	for _, b := range s.Bindings.By(byOrphan, namespace) {
		names = append(names, b.Key.Name)
		if source := rules.Claimant(b.Value, s.to(namespace)); source != nil {
			names = append(names, source.Name)
		}
	}
	return names
}

func (s *State) to(namespace string) func(infer.Role) []*infer.Binding {
	return func(r infer.Role) []*infer.Binding { return s.BindingsTo(namespace, r) }
}

func values(bindings []Binding) []*infer.Binding {
	list := make([]*infer.Binding, len(bindings))
	for i, b := range bindings {
		list[i] = b.Value
	}
	return list
}

// Generated counts those of all namespaces, GeneratedFrom those of one source.
func (s *State) Generated() int { return s.Bindings.Count(byOwner, everywhere) }

// GeneratedFrom counts the bindings that were generated from one source.
func (s *State) GeneratedFrom(namespace, source string) int {
	return s.Bindings.Count(byOwner, namespace+"/"+source)
}

// Snapshot is what there is under the name of one source.
func (s *State) Snapshot(namespace, source string) infer.Input {
	in := infer.Input{
		Source: source, Generated: values(s.Bindings.By(byOwner, namespace+"/"+source)),
		Occupant: func(name string) *infer.Binding { return s.Binding(namespace, name) }, To: s.to(namespace),
	}
	if b := s.Binding(namespace, source); b != nil && b.Source == "" {
		in.Binding = b
	}
	return in
}

// Sources lists the names of all that may be, or may have been, a source.
func (s *State) Sources(namespace string) []string {
	var names []string
	for _, b := range s.BindingsIn(namespace) {
		names = append(names, SourceOf(b))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// SourceOf is the name of the source of a binding: its own unless it is generated.
func SourceOf(b *infer.Binding) string { return cmp.Or(b.Source, b.Name) }
