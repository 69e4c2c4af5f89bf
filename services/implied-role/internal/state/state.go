// Package state provides indexed access to the view. It finds the rules of a namespace with their rule set, the
// bindings to a role, and the bindings that were generated from a source.
package state

import (
	"cmp"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Indexes of the tables. The key of a role in a namespace is "namespace/role".
const (
	byNamespace = "namespace"
	// byChild finds rules by their child: a Role in one namespace, or a ClusterRole in all.
	byChild = "child"
	// byRole finds explicit bindings, bySource the sources among them, and byGrant generated bindings.
	byRole   = "role"
	bySource = "source"
	byGrant  = "grant"
	// byOwner finds generated bindings by namespace and source, or all of them by everywhere. byOrphan finds those
	// without a traceable source, by namespace.
	byOwner    = "owner"
	byOrphan   = "orphan"
	everywhere = "*"
)

type (
	// Rule is an ImpliedRoles object.
	Rule = informer.Object[rolev1alpha1.ImpliedRoles]
	// Binding is a RoleBinding or ClusterRoleBinding.
	Binding = informer.Object[infer.Binding]
)

// State holds the objects of one cluster.
type State struct {
	Cluster  string
	Policy   infer.Policy
	Rules    *informer.Lister[rolev1alpha1.ImpliedRoles]
	Bindings *informer.Lister[infer.Binding]

	clusterBindings     *informer.Lister[infer.Binding]
	roles, clusterRoles *informer.Lister[metav1.PartialObjectMetadata]

	mu       sync.Mutex
	ruleSets map[string]*cachedRuleSet
}

// New registers the tables in v. The view must hold the objects of that cluster only.
func New(v *informer.Informer, cluster string, policy infer.Policy) *State {
	s := &State{
		Cluster: cluster, Policy: policy, ruleSets: map[string]*cachedRuleSet{},
		Rules: informer.Register(v, kinds.ImpliedRoles(), map[string]func(*rolev1alpha1.ImpliedRoles) []string{
			byNamespace: func(r *rolev1alpha1.ImpliedRoles) []string { return []string{r.Namespace} },
			byChild:     func(r *rolev1alpha1.ImpliedRoles) []string { return []string{childIndex(r.Namespace, RuleOf(r).Child)} },
		}),
		Bindings: informer.Register(v, kinds.RoleBindings(), map[string]func(*infer.Binding) []string{
			byNamespace: func(b *infer.Binding) []string { return []string{b.Namespace} },
			byRole: func(b *infer.Binding) []string {
				return valuesIf(!b.IsGenerated(), indexValue(b.Namespace, b.Role))
			},
			byGrant: func(b *infer.Binding) []string {
				return valuesIf(b.IsGenerated(), indexValue(b.Namespace, b.Role))
			},
			bySource: func(b *infer.Binding) []string {
				return valuesIf(b.IsSource(), indexValue(b.Namespace, b.Role), b.Namespace)
			},
			byOwner: func(b *infer.Binding) []string {
				if b.Source == "" {
					return valuesIf(b.IsGenerated(), everywhere)
				}
				return []string{b.Namespace + "/" + b.Source, everywhere}
			},
			byOrphan: func(b *infer.Binding) []string {
				return valuesIf(b.IsGenerated() && b.Source == "", b.Namespace)
			},
		}),
		clusterBindings: informer.Register(v, kinds.ClusterRoleBindings(), map[string]func(*infer.Binding) []string{
			byRole: func(b *infer.Binding) []string { return []string{b.Role.String()} },
		}),
		roles:        informer.Register[metav1.PartialObjectMetadata](v, kinds.Roles(), nil),
		clusterRoles: informer.Register[metav1.PartialObjectMetadata](v, kinds.ClusterRoles(), nil),
	}
	v.OnChange(s.markChanged)
	v.OnReload(s.markAllChanged)
	return s
}

func indexValue(namespace string, r infer.Role) string { return namespace + "/" + r.String() }

func childIndex(namespace string, child infer.Role) string {
	if child.Cluster {
		return child.String()
	}
	return indexValue(namespace, child)
}

// valuesIf returns the values if apply is true, and nil otherwise.
func valuesIf(apply bool, values ...string) []string {
	if !apply {
		return nil
	}
	return values
}

// RuleOf converts a rule to the form of package infer.
func RuleOf(r *rolev1alpha1.ImpliedRoles) infer.Rule {
	spec := r.Spec.InferenceRule
	parent, flaw := infer.ParseRole(spec.ParentKind, spec.ParentRole)
	child, other := infer.ParseRole(spec.ChildKind, spec.ChildRole)
	return infer.Rule{Name: r.Name, Created: r.CreationTimestamp.Time, Parent: parent, Child: child, Flaw: cmp.Or(flaw, other)}
}

// RulesIn lists the rules of a namespace, including those that are being deleted.
func (s *State) RulesIn(namespace string) []Rule { return s.Rules.By(byNamespace, namespace) }

// RuleCount counts the rules of a namespace, including those that are being deleted.
func (s *State) RuleCount(namespace string) int { return s.Rules.Count(byNamespace, namespace) }

// Namespaces lists the namespaces that have rules, in order.
func (s *State) Namespaces() []string {
	return namespacesOf(s.Rules.All())
}

// NamespacesWithChild lists the namespaces that have a rule with this child. The role is a Role of the given namespace,
// or a ClusterRole if namespace is empty.
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

// Exists returns a function that reports whether a role exists in a namespace.
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

// BindingKey returns the key of a RoleBinding.
func (s *State) BindingKey(namespace, name string) event.Key {
	return event.Key{Cluster: s.Cluster, GroupResource: kinds.RoleBindings().GroupResource, Namespace: namespace, Name: name}
}

// Binding returns a RoleBinding, or nil.
func (s *State) Binding(namespace, name string) *infer.Binding {
	b, _ := s.Bindings.Get(s.BindingKey(namespace, name))
	return b.Value
}

// BindingsIn lists all RoleBindings of a namespace.
func (s *State) BindingsIn(namespace string) []*infer.Binding {
	return bindingPointers(s.Bindings.By(byNamespace, namespace))
}

// Gone lists the deleted rules and bindings of a namespace whose tombstones the view holds.
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

// BindingCount counts the RoleBindings of a namespace.
func (s *State) BindingCount(namespace string) int { return s.Bindings.Count(byNamespace, namespace) }

// BindingsTo lists the explicit bindings to a role.
func (s *State) BindingsTo(namespace string, r infer.Role) []*infer.Binding {
	return bindingPointers(s.Bindings.By(byRole, indexValue(namespace, r)))
}

// BindingsEverywhere lists the ClusterRoleBindings.
func (s *State) BindingsEverywhere() []*infer.Binding {
	return bindingPointers(s.clusterBindings.All())
}

// BindingsEverywhereTo lists the ClusterRoleBindings to a role.
func (s *State) BindingsEverywhereTo(r infer.Role) []*infer.Binding {
	return bindingPointers(s.clusterBindings.By(byRole, r.String()))
}

// GeneratedTo lists the generated bindings to a role.
func (s *State) GeneratedTo(namespace string, r infer.Role) []*infer.Binding {
	return bindingPointers(s.Bindings.By(byGrant, indexValue(namespace, r)))
}

// Orphans lists the names of the generated bindings without a traceable source. It also lists the sources from which
// they follow by [infer.RuleSet.Claimant].
func (s *State) Orphans(namespace string, rules *infer.RuleSet) []string {
	var names []string
	for _, b := range s.Bindings.By(byOrphan, namespace) {
		names = append(names, b.Key.Name)
		if source := rules.Claimant(b.Value, s.bindingsTo(namespace)); source != nil {
			names = append(names, source.Name)
		}
	}
	return names
}

func (s *State) bindingsTo(namespace string) func(infer.Role) []*infer.Binding {
	return func(r infer.Role) []*infer.Binding { return s.BindingsTo(namespace, r) }
}

func bindingPointers(bindings []Binding) []*infer.Binding {
	list := make([]*infer.Binding, len(bindings))
	for i, b := range bindings {
		list[i] = b.Value
	}
	return list
}

// Generated counts the generated bindings of all namespaces.
func (s *State) Generated() int { return s.Bindings.Count(byOwner, everywhere) }

// GeneratedFrom counts the bindings that were generated from one source.
func (s *State) GeneratedFrom(namespace, source string) int {
	return s.Bindings.Count(byOwner, namespace+"/"+source)
}

// Snapshot returns the current input of the plan for one source.
func (s *State) Snapshot(namespace, source string) infer.Input {
	in := infer.Input{
		Source: source, Generated: bindingPointers(s.Bindings.By(byOwner, namespace+"/"+source)),
		Occupant: func(name string) *infer.Binding { return s.Binding(namespace, name) }, To: s.bindingsTo(namespace),
	}
	if b := s.Binding(namespace, source); b != nil && b.Source == "" {
		in.Binding = b
	}
	return in
}

// Sources lists the names of all bindings that are or were a possible source.
func (s *State) Sources(namespace string) []string {
	var names []string
	for _, b := range s.BindingsIn(namespace) {
		names = append(names, SourceOf(b))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// SourceOf returns the name of the source of a binding. Without a source, it is the name of the binding.
func SourceOf(b *infer.Binding) string { return cmp.Or(b.Source, b.Name) }
