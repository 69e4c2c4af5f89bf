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

// rankLiveResources returns the resources that are not in deletion, ordered by [registrationRank] and then by age. If
// two resources register the same kind, the first one wins.
func rankLiveResources(resources []*iamv1alpha1.ProtectedResource) []*iamv1alpha1.ProtectedResource {
	alive := slices.DeleteFunc(slices.Clone(resources), func(p *iamv1alpha1.ProtectedResource) bool { return p.DeletionTimestamp != nil })
	slices.SortFunc(alive, func(a, b *iamv1alpha1.ProtectedResource) int {
		return cmp.Or(cmp.Compare(registrationRank(a), registrationRank(b)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return alive
}

// Ranks of [registrationRank]. A lower rank wins; 0 means registered and unchanged.
const (
	// editedRank means that the resource was changed after its registration.
	editedRank = iota + 1
	// unregisteredRank means that the status records no registration of the kind in the spec.
	unregisteredRank
)

// registrationRank returns the rank of a resource for the kind in its spec. Only the registration in the status
// matters. Other conditions, for example that OpenFGA is unavailable, must not take a kind away.
func registrationRank(p *iamv1alpha1.ProtectedResource) int {
	switch record := p.Status.Registered; {
	case record == nil || record.Group != APIGroupName(p.Spec.ServiceRef.Name) || record.Kind != p.Spec.Kind || record.Plural != p.Spec.Plural:
		return unregisteredRank
	case record.Generation != p.Generation:
		return editedRank
	}
	return 0
}

// claimedRegistration returns the registration in the status if it is for the kind in the spec, and an empty one
// otherwise. While a registration is recorded, no other resource gets its kind, permissions or parents.
func claimedRegistration(p *iamv1alpha1.ProtectedResource) iamv1alpha1.Registration {
	if registrationRank(p) == unregisteredRank {
		return iamv1alpha1.Registration{}
	}
	return *p.Status.Registered
}

// reservations holds the entries of all registrations in statuses. No other resource gets such an entry until the
// status changes, even if the spec was changed. So the registrations never contradict each other, in whatever order
// resources are edited.
type reservations struct {
	// types and resources map to the name of the ProtectedResource, relations map to permissions, and parents map a
	// type to its parent types.
	types, resources, relations map[string]string
	parents                     map[string][]string
}

// readReservations reads the registrations of resources, which must be in the order of [rankLiveResources]. The first
// resource wins an entry.
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

// newRegistration returns the registration to write to the status.
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

// isOverBudget reports whether the condition Registered states that the model has no room for the resource.
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

// EqualForRegistration reports whether two states of one ProtectedResource are equal for [NewRegistry]. It ignores
// status fields that only users read. Neither state may be in deletion.
func EqualForRegistration(a, b *iamv1alpha1.ProtectedResource) bool {
	return a.UID == b.UID && a.Generation == b.Generation && a.CreationTimestamp.Equal(&b.CreationTimestamp) && isOverBudget(a) == isOverBudget(b) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec) && equality.Semantic.DeepEqual(a.Status.Registered, b.Status.Registered)
}
