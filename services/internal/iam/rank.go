package iam

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// ranked are those that are not in deletion, the best claims first. Who is in force as it is stays
// so; of others the older comes first.
func ranked(resources []*iamv1alpha1.ProtectedResource) []*iamv1alpha1.ProtectedResource {
	alive := slices.DeleteFunc(slices.Clone(resources), func(p *iamv1alpha1.ProtectedResource) bool { return p.DeletionTimestamp != nil })
	slices.SortFunc(alive, func(a, b *iamv1alpha1.ProtectedResource) int {
		return cmp.Or(cmp.Compare(incumbency(a), incumbency(b)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return alive
}

// Incumbencies are less for those with better claims.
const (
	// edited is of who has a kind, and has changed since.
	edited = iota + 1
	// newcomer is of who does not have the kind that it claims: it is recorded nowhere, or another is.
	newcomer
)

// incumbency is less for those whose kind is in force: first who has it as he is, then who has changed since. Whatever else is
// said of one, such as that OpenFGA gives no answer, takes no kind away.
func incumbency(p *iamv1alpha1.ProtectedResource) int {
	switch record := p.Status.Registered; {
	case record == nil || record.Group != Group(p.Spec.ServiceRef.Name) || record.Kind != p.Spec.Kind || record.Plural != p.Spec.Plural:
		return newcomer
	case record.Generation != p.Generation:
		return edited
	}
	return 0
}

// holding is what somebody has, and nobody else gets as long as he claims it: nothing if the record is of another kind.
func holding(p *iamv1alpha1.ProtectedResource) iamv1alpha1.Registration {
	if incumbency(p) == newcomer {
		return iamv1alpha1.Registration{}
	}
	return *p.Status.Registered
}

// reserved is what the records of all say. Nobody else gets it before they say otherwise, though it may be claimed no more: so
// no two records contradict each other, whatever is edited, in whatever order, while nobody judges it.
type reserved struct {
	// types and resources lead to the names of who has them, relations to permissions, parents from types to those of parents.
	types, resources, relations map[string]string
	parents                     map[string][]string
}

// reserve reads the records of those that are not in deletion, the best claims first.
func reserve(resources []*iamv1alpha1.ProtectedResource) reserved {
	r := reserved{map[string]string{}, map[string]string{}, map[string]string{}, map[string][]string{}}
	for _, p := range resources {
		record := p.Status.Registered
		if record == nil {
			continue
		}
		typ, resource := Type(record.Group, record.Kind), Type(record.Group, record.Plural)
		r.types[typ], r.resources[resource] = cmp.Or(r.types[typ], p.Name), cmp.Or(r.resources[resource], p.Name)
		r.parents[typ] = append(r.parents[typ], record.Parents...)
		for _, permission := range record.Permissions {
			relation := Relation(permission)
			r.relations[relation] = cmp.Or(r.relations[relation], permission)
		}
	}
	return r
}

// registration is what a kind has, to be recorded.
func (k *Kind) registration() *iamv1alpha1.Registration {
	spec := &k.Resource.Spec
	r := &iamv1alpha1.Registration{
		Group: Group(spec.ServiceRef.Name), Kind: spec.Kind, Plural: spec.Plural, Permissions: k.Permissions, Generation: k.Resource.Generation,
	}
	for _, parent := range k.Parents {
		r.Parents = append(r.Parents, parent.Type)
	}
	slices.Sort(r.Parents)
	return r
}

// hasNoRoom says whether the model had no room for somebody, when it was looked at last.
func hasNoRoom(p *iamv1alpha1.ProtectedResource) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, iamv1alpha1.Registered)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == iamv1alpha1.LimitExceeded
}

func setOf(all []string) map[string]bool {
	set := make(map[string]bool, len(all))
	for _, one := range all {
		set[one] = true
	}
	return set
}

// JudgedAlike says whether [Register] makes the same of two states of a ProtectedResource that is there: most that its status says
// matters to people alone.
func JudgedAlike(a, b *iamv1alpha1.ProtectedResource) bool {
	return a.UID == b.UID && a.Generation == b.Generation && a.CreationTimestamp.Equal(&b.CreationTimestamp) && hasNoRoom(a) == hasNoRoom(b) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec) && equality.Semantic.DeepEqual(a.Status.Registered, b.Status.Registered)
}
