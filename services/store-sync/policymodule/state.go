package policymodule

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
	"github.com/entail-dev/entail/services/store-sync/policymodule/plan"
)

const byStoreRef = "store ref"

type policyDocument = informer.Object[iaplv1alpha1.PolicyDocument]

// state holds the objects from which policies are made.
type state struct {
	shared    *module.StoreListers
	documents *informer.Lister[iaplv1alpha1.PolicyDocument]
	merged    MergeAfterPlanFunc
}

// MergeAfterPlanFunc returns the merge of a Store's modules after a plan, and the limits of its model. It returns false if the Store
// does not exist or has no model.
type MergeAfterPlanFunc func(store event.Key, todo moduleplan.Plan) (model.MergeResult, model.Limits, bool)

func newState(v *informer.Informer, shared *module.StoreListers, merged MergeAfterPlanFunc) *state {
	return &state{shared: shared, merged: merged, documents: informer.RegisterLister(v, kinds.PolicyDocuments(),
		map[string]func(*iaplv1alpha1.PolicyDocument) []string{
			byStoreRef: func(d *iaplv1alpha1.PolicyDocument) []string { return []string{d.Spec.StoreRef.Name} },
		})}
}

// referencedStoreKey returns the key of the Store to which a document refers, even if that does not exist.
func referencedStoreKey(d policyDocument) event.Key {
	return module.StoreKey(d.Value.Spec.StoreRef.Name, cmp.Or(d.Value.Spec.StoreRef.Cluster, d.Key.Cluster))
}

// storeSnapshot holds everything that the policy of one Store depends on.
type storeSnapshot struct {
	input     plan.Input
	documents []policyDocument
	carriers  *module.GeneratedModels
}

// collectSnapshot collects the state from the informer, and adds the previewed documents.
func (s *state) collectSnapshot(store event.Key, previewed ...plan.Document) *storeSnapshot {
	found := &storeSnapshot{carriers: s.shared.GeneratedModelsOf(store, corev1alpha1.DocumentAnnotation)}
	found.input.Store.Name = store.Name
	for _, d := range s.documents.ListByIndex(byStoreRef, store.Name) {
		if referencedStoreKey(d) != store || d.Key.Cluster != store.Cluster {
			continue
		}
		name := d.Key.NamespacedName()
		found.documents, found.carriers.Causes[name] = append(found.documents, d), d.Change
		found.input.Documents = append(found.input.Documents, plan.Document{
			Name: name, UID: string(d.Value.UID), Present: &d.Value.Spec.Policy, Created: d.Value.CreationTimestamp.Time,
		})
	}
	for _, d := range previewed {
		found.input.AddPreviewedDocument(d)
	}
	for _, m := range found.carriers.Models {
		found.input.Has = append(found.input.Has, documentDerivedFields(m))
	}
	if o, ok := s.shared.Stores.GetOrTombstone(store); ok {
		found.input.Roles, found.carriers.Otherwise = o.Value.Annotations[iaplv1alpha1.RolesAnnotation], o.Change
	}
	if s.merged != nil && !found.isEmpty() {
		if merged, limits, ok := s.merged(store, moduleplan.Plan{}); ok {
			found.input.SetOtherModules(merged, limits)
		}
	}
	return found
}

// isEmpty reports whether the Store has no policy.
func (f *storeSnapshot) isEmpty() bool { return len(f.input.Documents)+len(f.carriers.Models) == 0 }

// documentDerivedFields returns an AuthorizationModel with only the fields that depend on documents, without its status.
func documentDerivedFields(m *corev1alpha1.AuthorizationModel) *corev1alpha1.AuthorizationModel {
	b := &corev1alpha1.AuthorizationModel{Spec: m.Spec, ObjectMeta: metav1.ObjectMeta{
		Name: m.Name, DeletionTimestamp: m.DeletionTimestamp, Annotations: map[string]string{},
	}}
	for _, name := range []string{corev1alpha1.DocumentAnnotation, corev1alpha1.PolicyAnnotation, corev1alpha1.DocumentUIDAnnotation} {
		b.Annotations[name] = m.Annotations[name]
	}
	return b
}

// expectedDocument returns the expected state of a document: the fields on which a policy depends.
func expectedDocument(d policyDocument) verify.ExpectedState {
	return verify.NewExpectedState(d, func(d *iaplv1alpha1.PolicyDocument) (declared, recorded any) {
		return []any{d.UID, d.CreationTimestamp, d.Spec}, nil
	})
}
