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

// rankLiveResources returns the resources that are not in deletion, best claim first. Resources with an unchanged registration
// come first, then edited ones, then new ones. Within a class the older comes first.
func rankLiveResources(resources []*iamv1alpha1.ProtectedResource) []*iamv1alpha1.ProtectedResource {
	alive := slices.DeleteFunc(slices.Clone(resources), func(p *iamv1alpha1.ProtectedResource) bool { return p.DeletionTimestamp != nil })
	slices.SortFunc(alive, func(a, b *iamv1alpha1.ProtectedResource) int {
		return cmp.Or(cmp.Compare(registrationRank(a), registrationRank(b)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return alive
}

// Ranks of [registrationRank]. A lower rank is a better claim; 0 means registered and unchanged.
const (
	// edited ranks a resource that holds its kind and was changed since its registration.
	edited = iota + 1
	// unregistered ranks a resource without a recorded registration of the kind it claims.
	unregistered
)

// registrationRank returns the rank of a resource's claim to its kind. Only the recorded registration counts. Other
// conditions, such as an unavailable OpenFGA, take no kind away.
func registrationRank(p *iamv1alpha1.ProtectedResource) int {
	switch record := p.Status.Registered; {
	case record == nil || record.Group != APIGroupName(p.Spec.ServiceRef.Name) || record.Kind != p.Spec.Kind || record.Plural != p.Spec.Plural:
		return unregistered
	case record.Generation != p.Generation:
		return edited
	}
	return 0
}

// claimedRegistration returns the recorded registration while the spec still claims that kind, and an empty one otherwise. No other
// resource gets its contents while the claim lasts.
func claimedRegistration(p *iamv1alpha1.ProtectedResource) iamv1alpha1.Registration {
	if registrationRank(p) == unregistered {
		return iamv1alpha1.Registration{}
	}
	return *p.Status.Registered
}

// reservations holds the contents of all recorded registrations. Other resources cannot get an entry before the record
// changes, even if the spec no longer claims it. So no two records contradict each other, whatever is edited, in any
// order, between two runs.
type reservations struct {
	// types and resources map to the name of the holder, relations to permissions, and parents from a type to its
	// parents' types.
	types, resources, relations map[string]string
	parents                     map[string][]string
}

// readReservations reads the records of resources, which are in the order of [rankLiveResources]. The best claim wins an entry.
func readReservations(resources []*iamv1alpha1.ProtectedResource) reservations {
	r := reservations{map[string]string{}, map[string]string{}, map[string]string{}, map[string][]string{}}
	for _, p := range resources {
		record := p.Status.Registered
		if record == nil {
			continue
		}
		typ, resource := OpenFGAType(record.Group, record.Kind), OpenFGAType(record.Group, record.Plural)
		r.types[typ], r.resources[resource] = cmp.Or(r.types[typ], p.Name), cmp.Or(r.resources[resource], p.Name)
		r.parents[typ] = append(r.parents[typ], record.Parents...)
		for _, permission := range record.Permissions {
			relation := RelationOf(permission)
			r.relations[relation] = cmp.Or(r.relations[relation], permission)
		}
	}
	return r
}

// newRegistration returns the registration to record for a kind.
func (k *RegisteredKind) newRegistration() *iamv1alpha1.Registration {
	spec := &k.Resource.Spec
	r := &iamv1alpha1.Registration{
		Group: APIGroupName(spec.ServiceRef.Name), Kind: spec.Kind, Plural: spec.Plural, Permissions: k.Permissions, Generation: k.Resource.Generation,
	}
	for _, parent := range k.Parents {
		r.Parents = append(r.Parents, parent.Type)
	}
	slices.Sort(r.Parents)
	return r
}

// isOverBudget reports whether the last recorded condition is that the model had no room for the resource.
func isOverBudget(p *iamv1alpha1.ProtectedResource) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, iamv1alpha1.Registered)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == iamv1alpha1.LimitExceeded
}

func stringSetOf(all []string) map[string]bool {
	set := make(map[string]bool, len(all))
	for _, one := range all {
		set[one] = true
	}
	return set
}

// EqualForRegistration reports whether [NewRegistry] treats two states of one ProtectedResource alike. It ignores status fields
// that only users read. Neither state may be in deletion.
func EqualForRegistration(a, b *iamv1alpha1.ProtectedResource) bool {
	return a.UID == b.UID && a.Generation == b.Generation && a.CreationTimestamp.Equal(&b.CreationTimestamp) && isOverBudget(a) == isOverBudget(b) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec) && equality.Semantic.DeepEqual(a.Status.Registered, b.Status.Registered)
}
