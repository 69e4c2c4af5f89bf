package storesync

import (
	"cmp"
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/store-sync/model"
	policies "github.com/entail-dev/entail/services/store-sync/policymodule/plan"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// registration is what services have registered with one Store.
type registration struct {
	policies.Input

	documents []view.Object[iaplv1alpha1.PolicyDocument]
	// made are the present states of AuthorizationModels by name, causes what asks for them by document.
	made, causes map[string]event.Change
}

// registration gathers what the view holds, in one order.
func (o objects) registration(store event.Key) registration {
	g := registration{made: map[string]event.Change{}, causes: map[string]event.Change{}}
	g.Store.Name = store.Name
	for _, d := range o.documents.By(byStoreRef, store.Name) {
		if o.store(store.Name, cmp.Or(d.Value.Spec.StoreRef.Cluster, d.Key.Cluster)) == store {
			g.documents = append(g.documents, d)
		}
	}
	for _, d := range inOrder(g.documents) {
		name := documentName(store, d.Key)
		g.causes[name] = d.Change
		g.Documents = append(g.Documents, policies.Document{Name: name, Present: &d.Value.Spec.Policy, Created: d.Value.CreationTimestamp.Time})
	}
	var others []string
	for _, m := range inOrder(o.modules.By(byStoreRef, store.Name)) {
		switch {
		case storeOf(m.Key, m.Value) != store:
		case m.Value.Annotations[corev1alpha1.DocumentAnnotation] == "":
			others = append(others, m.Value.Spec.Model)
		case m.Key.Cluster == o.cluster:
			g.Has, g.made[m.Key.Name] = append(g.Has, bare(m.Value)), m.Change
		}
	}
	if s, ok := o.stores.Get(store); ok {
		g.Roles = s.Value.Annotations[iaplv1alpha1.RolesAnnotation]
		others = append(others, s.Value.Spec.CoreModule)
	}
	if len(g.documents)+len(g.made) > 0 {
		g.Defined = defined(others)
	}
	return g
}

func inOrder[T any](all []view.Object[T]) []view.Object[T] {
	slices.SortFunc(all, func(a, b view.Object[T]) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	return all
}

// defined is all that modules define.
func defined(modules []string) map[string]bool {
	names := map[string]bool{}
	for _, text := range modules {
		for _, name := range (model.Module{DSL: text}).Defines() {
			names[name] = true
		}
	}
	return names
}

// bare is an AuthorizationModel without what has nothing to do with documents, such as its status.
func bare(m *corev1alpha1.AuthorizationModel) *corev1alpha1.AuthorizationModel {
	b := &corev1alpha1.AuthorizationModel{Spec: m.Spec, ObjectMeta: metav1.ObjectMeta{
		Name: m.Name, DeletionTimestamp: m.DeletionTimestamp, Annotations: map[string]string{},
	}}
	for _, name := range []string{corev1alpha1.DocumentAnnotation, corev1alpha1.PolicyAnnotation} {
		b.Annotations[name] = m.Annotations[name]
	}
	return b
}

// documentName is namespace/name, after the cluster where that is not the Store's.
func documentName(store, document event.Key) string {
	name := document.Namespace + "/" + document.Name
	if document.Cluster != store.Cluster {
		name = document.Cluster + "/" + name
	}
	return name
}

// register makes AuthorizationModels of the PolicyDocuments of a Store, as far as they fit
// together, and tells what became of each. A Store in deletion gets no more.
func (r *reconciler) register(ctx context.Context, store event.Key) ([]plan.Document, error) {
	g := r.registration(store)
	if len(g.documents)+len(g.made) == 0 || store.Cluster != r.cluster {
		return nil, nil
	}
	steps := r.policies.of(store, g.Input, policies.Make)
	var errs []error
	if s, ok := r.stores.Get(store); ok && s.Value.DeletionTimestamp == nil {
		for i := range steps.Apply {
			m := &steps.Apply[i]
			cause, ok := g.causes[m.Annotations[corev1alpha1.DocumentAnnotation]]
			if !ok { // It has gone, and others need it.
				cause = s.Change
			}
			errs = append(errs, r.makeModule(ctx, g.made[m.Name], cause, m))
		}
	}
	errs = append(errs, r.deleteModules(ctx, g.made, steps.Delete))
	documents := make([]plan.Document, len(g.documents))
	for i, d := range g.documents {
		documents[i] = plan.Document{Change: d.Change, Value: d.Value, Validation: steps.Validations[documentName(store, d.Key)]}
	}
	return documents, errors.Join(errs...)
}
