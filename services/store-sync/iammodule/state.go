package iammodule

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/verify"
)

type protectedResource = informer.Object[iamv1alpha1.ProtectedResource]

// state holds the objects from which the types of IAM are made.
type state struct {
	// store is the key of the IAM store. Only ProtectedResources of its cluster count.
	store     event.Key
	resources *informer.Lister[iamv1alpha1.ProtectedResource]
}

func newState(v *informer.Informer, store event.Key) *state {
	return &state{store: store, resources: informer.RegisterLister[iamv1alpha1.ProtectedResource](v, kinds.ProtectedResources(), nil)}
}

// undeletedResources returns the ProtectedResources of this cluster that are not in deletion, sorted by name.
func (s *state) undeletedResources() []protectedResource {
	found := slices.DeleteFunc(slices.Clone(s.resources.All()), func(o protectedResource) bool {
		return o.Key.Cluster != s.store.Cluster || o.Value.DeletionTimestamp != nil
	})
	slices.SortFunc(found, func(a, b protectedResource) int { return strings.Compare(a.Key.Name, b.Key.Name) })
	return found
}

// resourceOrTombstone returns the newest known state of a ProtectedResource of this cluster, live or deleted.
func (s *state) resourceOrTombstone(name string) protectedResource {
	key := event.Key{Cluster: s.store.Cluster, GroupResource: kinds.ProtectedResources().GroupResource, Name: name}
	o, _ := s.resources.GetOrTombstone(key)
	o.Key = key
	return o
}

// expectedResource returns the expected state of a ProtectedResource: the fields on which the model depends.
func expectedResource(o protectedResource) verify.ExpectedState {
	return verify.NewExpectedState(o, func(p *iamv1alpha1.ProtectedResource) (declared, recorded any) {
		b := modelRelevantFields(p)
		return []any{b.ObjectMeta, b.Spec}, b.Status
	})
}

// modelRelevantFields returns a ProtectedResource with only the fields that influence the model, without the dates of its status.
func modelRelevantFields(p *iamv1alpha1.ProtectedResource) *iamv1alpha1.ProtectedResource {
	b := &iamv1alpha1.ProtectedResource{Spec: p.Spec, ObjectMeta: metav1.ObjectMeta{
		Name: p.Name, Generation: p.Generation, CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp,
	}}
	b.Status.Registered = p.Status.Registered
	return b
}
