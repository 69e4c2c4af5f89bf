// Package state provides indexed access to the informer. It finds the rules of a namespace with their rule set, the
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

// New registers the tables in v. The informer must hold the objects of that cluster only.
func New(v *informer.Informer, cluster string, policy infer.Policy) *State {
	s := &State{
		Cluster: cluster, Policy: policy, ruleSets: map[string]*cachedRuleSet{},
		Rules: informer.RegisterLister(v, kinds.ImpliedRoles(), map[string]func(*rolev1alpha1.ImpliedRoles) []string{
			byNamespace: func(r *rolev1alpha1.ImpliedRoles) []string { return []string{r.Namespace} },
			byChild: func(r *rolev1alpha1.ImpliedRoles) []string {
				return []string{childIndexKey(r.Namespace, ToInferRule(r).Child)}
			},
		}),
		Bindings: informer.RegisterLister(v, kinds.RoleBindings(), map[string]func(*infer.Binding) []string{
			byNamespace: func(b *infer.Binding) []string { return []string{b.Namespace} },
			byRole: func(b *infer.Binding) []string {
				return valuesIf(!b.IsGenerated(), roleIndexKey(b.Namespace, b.Role))
			},
			byGrant: func(b *infer.Binding) []string {
				return valuesIf(b.IsGenerated(), roleIndexKey(b.Namespace, b.Role))
			},
			bySource: func(b *infer.Binding) []string {
				return valuesIf(b.IsSource(), roleIndexKey(b.Namespace, b.Role), b.Namespace)
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
		clusterBindings: informer.RegisterLister(v, kinds.ClusterRoleBindings(), map[string]func(*infer.Binding) []string{
			byRole:     func(b *infer.Binding) []string { return []string{b.Role.String()} },
			everywhere: func(*infer.Binding) []string { return []string{everywhere} },
		}),
		roles: informer.RegisterLister(v, kinds.Roles(), map[string]func(*metav1.PartialObjectMetadata) []string{
			byNamespace: func(r *metav1.PartialObjectMetadata) []string { return []string{r.Namespace} },
		}),
		clusterRoles: informer.RegisterLister[metav1.PartialObjectMetadata](v, kinds.ClusterRoles(), nil),
	}
	v.OnChange(s.markRuleSetStale)
	v.OnReload(s.markAllStale)
	return s
}

func roleIndexKey(namespace string, r infer.Role) string { return namespace + "/" + r.String() }

func childIndexKey(namespace string, child infer.Role) string {
	if child.Cluster {
		return child.String()
	}
	return roleIndexKey(namespace, child)
}

// valuesIf returns the values if apply is true, and nil otherwise.
func valuesIf(apply bool, values ...string) []string {
	if !apply {
		return nil
	}
	return values
}

// ToInferRule converts a rule to the form of package infer.
func ToInferRule(r *rolev1alpha1.ImpliedRoles) infer.Rule {
	spec := r.Spec.InferenceRule
	parent, flaw := infer.ParseRole(spec.ParentKind, spec.ParentRole)
	child, other := infer.ParseRole(spec.ChildKind, spec.ChildRole)
	return infer.Rule{Name: r.Name, Created: r.CreationTimestamp.Time, Parent: parent, Child: child, Flaw: cmp.Or(flaw, other)}
}

// RulesIn lists the rules of a namespace, including those that are being deleted.
func (s *State) RulesIn(namespace string) []Rule { return s.Rules.ListByIndex(byNamespace, namespace) }

// CountRules counts the rules of a namespace, including those that are being deleted.
func (s *State) CountRules(namespace string) int { return s.Rules.CountByIndex(byNamespace, namespace) }

// NamespacesWithRules lists the namespaces that have rules, in order.
func (s *State) NamespacesWithRules() []string {
	return namespacesOfRules(s.Rules.All())
}

// NamespacesWithChild lists the namespaces that have a rule with this child. The role is a Role of the given namespace,
// or a ClusterRole if namespace is empty.
func (s *State) NamespacesWithChild(namespace, role string) []string {
	return namespacesOfRules(s.Rules.ListByIndex(byChild, childIndexKey(namespace, infer.Role{Name: role, Cluster: namespace == ""})))
}

func namespacesOfRules(rules []Rule) []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.Key.Namespace)
	}
	return slices.Compact(names)
}

// RoleExistsFunc returns a function that reports whether a role exists in a namespace.
func (s *State) RoleExistsFunc(namespace string) func(infer.Role) bool {
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

// RoleNames lists the names of the Roles of a namespace.
func (s *State) RoleNames(namespace string) []string {
	return namesIn(s.roles.ListByIndex(byNamespace, namespace))
}

// ClusterRoleNames lists the names of all ClusterRoles.
func (s *State) ClusterRoleNames() []string { return namesIn(s.clusterRoles.All()) }

func namesIn(objects []informer.Object[metav1.PartialObjectMetadata]) []string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.Key.Name
	}
	return names
}

// CountClusterRoleBindings counts the ClusterRoleBindings.
func (s *State) CountClusterRoleBindings() int {
	return s.clusterBindings.CountByIndex(everywhere, everywhere)
}

// HasObjectsIn reports whether a namespace has a Role, a RoleBinding or a rule.
func (s *State) HasObjectsIn(namespace string) bool {
	return s.CountRules(namespace) > 0 || s.CountBindings(namespace) > 0 || s.roles.CountByIndex(byNamespace, namespace) > 0
}

// Namespaces lists the namespaces that have a RoleBinding or a rule, in order.
func (s *State) Namespaces() []string {
	names := s.NamespacesWithRules()
	for _, b := range s.Bindings.All() {
		names = append(names, b.Key.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// HasSubject reports whether a binding of any namespace, or a ClusterRoleBinding, names a subject for which matches returns
// true.
func (s *State) HasSubject(matches func(*infer.Binding) bool) bool {
	isNamed := func(b Binding) bool { return matches(b.Value) }
	return slices.ContainsFunc(s.Bindings.All(), isNamed) || slices.ContainsFunc(s.clusterBindings.All(), isNamed)
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
	return bindingPointers(s.Bindings.ListByIndex(byNamespace, namespace))
}

// DeletedKeys lists the deleted rules and bindings of a namespace whose tombstones the informer holds.
func (s *State) DeletedKeys(namespace string) []event.Key {
	var keys []event.Key
	for _, r := range s.Rules.TombstonesByIndex(byNamespace, namespace) {
		keys = append(keys, r.Key)
	}
	for _, b := range s.Bindings.TombstonesByIndex(byNamespace, namespace) {
		keys = append(keys, b.Key)
	}
	return keys
}

// CountBindings counts the RoleBindings of a namespace.
func (s *State) CountBindings(namespace string) int {
	return s.Bindings.CountByIndex(byNamespace, namespace)
}

// ExplicitBindingsTo lists the explicit bindings to a role.
func (s *State) ExplicitBindingsTo(namespace string, r infer.Role) []*infer.Binding {
	return bindingPointers(s.Bindings.ListByIndex(byRole, roleIndexKey(namespace, r)))
}

// ClusterRoleBindings lists the ClusterRoleBindings.
func (s *State) ClusterRoleBindings() []*infer.Binding {
	return bindingPointers(s.clusterBindings.All())
}

// ClusterRoleBindingsTo lists the ClusterRoleBindings to a role.
func (s *State) ClusterRoleBindingsTo(r infer.Role) []*infer.Binding {
	return bindingPointers(s.clusterBindings.ListByIndex(byRole, r.String()))
}

// GeneratedBindingsTo lists the generated bindings to a role.
func (s *State) GeneratedBindingsTo(namespace string, r infer.Role) []*infer.Binding {
	return bindingPointers(s.Bindings.ListByIndex(byGrant, roleIndexKey(namespace, r)))
}

// OrphansAndClaimants lists the names of the generated bindings without a traceable source. It also lists the sources from which
// they follow by [infer.RuleSet.FindImplyingSource].
func (s *State) OrphansAndClaimants(namespace string, rules *infer.RuleSet) []string {
	var names []string
	for _, b := range s.Bindings.ListByIndex(byOrphan, namespace) {
		names = append(names, b.Key.Name)
		if source := rules.FindImplyingSource(b.Value, s.explicitBindingsFunc(namespace)); source != nil {
			names = append(names, source.Name)
		}
	}
	return names
}

func (s *State) explicitBindingsFunc(namespace string) func(infer.Role) []*infer.Binding {
	return func(r infer.Role) []*infer.Binding { return s.ExplicitBindingsTo(namespace, r) }
}

func bindingPointers(bindings []Binding) []*infer.Binding {
	list := make([]*infer.Binding, len(bindings))
	for i, b := range bindings {
		list[i] = b.Value
	}
	return list
}

// CountGenerated counts the generated bindings of all namespaces.
func (s *State) CountGenerated() int { return s.Bindings.CountByIndex(byOwner, everywhere) }

// CountGeneratedFrom counts the bindings that were generated from one source.
func (s *State) CountGeneratedFrom(namespace, source string) int {
	return s.Bindings.CountByIndex(byOwner, namespace+"/"+source)
}

// PlanInput returns the current input of the plan for one source.
func (s *State) PlanInput(namespace, source string) infer.PlanInput {
	in := infer.PlanInput{
		Source: source, Generated: bindingPointers(s.Bindings.ListByIndex(byOwner, namespace+"/"+source)),
		Occupant: func(name string) *infer.Binding { return s.Binding(namespace, name) }, To: s.explicitBindingsFunc(namespace),
	}
	if b := s.Binding(namespace, source); b != nil && b.Source == "" {
		in.Binding = b
	}
	return in
}

// PossibleSourceNames lists the names of all bindings that are or were a possible source.
func (s *State) PossibleSourceNames(namespace string) []string {
	var names []string
	for _, b := range s.BindingsIn(namespace) {
		names = append(names, SourceName(b))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// SourceName returns the name of the source of a binding. Without a source, it is the name of the binding.
func SourceName(b *infer.Binding) string { return cmp.Or(b.Source, b.Name) }
