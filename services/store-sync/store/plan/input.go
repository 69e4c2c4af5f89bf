package plan

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/model"
)

var errNoTypes = errors.New("no module defines a type, and OpenFGA requires one: add a type, such as `type user`")

// Input holds the state of one Store in the informer.
type Input struct {
	// Key is the key of the Store. AuthorizationModels may refer to a Store that does not exist.
	Key event.Key
	// Store is nil unless the Store is alive. Gone is then its last state, if known.
	Store, Gone *corev1alpha1.Store
	// Earlier holds the last states of the Stores with the name before Store or Gone.
	Earlier []*corev1alpha1.Store
	// Elsewhere is the Store if it lives in another cluster. The store-sync there decides about its modules.
	Elsewhere *corev1alpha1.Store
	// Change is the change of Store or Gone.
	Change event.Change
	// Modules are the AuthorizationModels that refer to the Store, in any order.
	Modules []ModelObject
	// Provided are further modules of a live Store, such as those of discovered resources.
	Provided []model.Module
	// Rivals are the other live Stores with the same name or the same OpenFGA store.
	Rivals []CompetingStore
	// Merged is the merge of the modules of a live Store. MergeErr is set if that is no model.
	Merged   model.MergeResult
	MergeErr error
	// NameErr is the error if OpenFGA would refuse the Store's name.
	NameErr error
	// Resync requires checks that an ordinary pass skips: the OpenFGA store exists, has the right name, and is the only
	// one with that name.
	Resync bool
	// Now is the transition time of conditions that change.
	Now metav1.Time
}

// ModelObject is one AuthorizationModel.
type ModelObject struct {
	event.Change
	Value *corev1alpha1.AuthorizationModel
}

// documentName returns the PolicyDocument of the module, or "" if the module was written by hand or generated for an API.
func (m ModelObject) documentName() string {
	return m.Value.Annotations[corev1alpha1.DocumentAnnotation]
}

// IsFromDocument reports whether the module was made from a PolicyDocument.
func (m ModelObject) IsFromDocument() bool { return m.documentName() != "" }

// isEmpty reports whether the module was made from a document without any part of a model.
func (m ModelObject) isEmpty() bool { return m.documentName() != "" && m.Value.Spec.Model == "" }

// CompetingStore is another live Store.
type CompetingStore struct {
	event.Change
	Value *corev1alpha1.Store
}

// ModuleSources returns the modules of the Store's model with their last live texts: the core module, then the others in
// canonical order. It leaves out modules of other clusters. An AuthorizationModel replaces a provided module for the
// same API that yields, and takes over its live text.
func ModuleSources(in Input) (core model.Module, others []model.Module) {
	core = model.Module{DSL: in.Store.Spec.CoreModule}
	if live := in.Store.Status.Live; live != nil {
		core.Live = live.CoreModule
	}
	for _, m := range in.Modules {
		if m.isEmpty() || m.Key.Cluster != in.Key.Cluster {
			continue
		}
		others = append(others, model.Module{
			Origin: in.originOf(m), DSL: m.Value.Spec.Model, API: m.Value.Annotations[corev1alpha1.ResourceAnnotation],
			Fault: m.Value.Annotations[corev1alpha1.RejectedAnnotation], Live: in.lastLiveText(m), Created: m.Value.CreationTimestamp.Time,
		})
	}
	generated := len(others)
	for _, m := range in.Provided {
		m.Live = in.liveDiscoveredText(m)
		i := slices.IndexFunc(others[:generated], func(o model.Module) bool { return m.Yields && o.API == m.API })
		if i < 0 {
			others = append(others, m)
		} else {
			others[i].Live = cmp.Or(others[i].Live, m.Live)
		}
	}
	slices.SortFunc(others, func(a, b model.Module) int { return a.Origin.Compare(b.Origin) })
	return core, others
}

// originOf returns the source of a module. It includes the cluster only if that differs from the Store's.
func (in Input) originOf(m ModelObject) model.ModuleOrigin {
	if document := m.documentName(); document != "" && m.Key.Cluster == in.Key.Cluster {
		return DocumentOrigin(document)
	}
	o := model.ModuleOrigin{Kind: model.AuthorizationModel, Name: m.Key.Name}
	if m.Key.Cluster != in.Key.Cluster {
		o.Scope = m.Key.Cluster
	}
	return o
}

// DocumentOrigin returns the origin of the module of a PolicyDocument.
func DocumentOrigin(document string) model.ModuleOrigin {
	namespace, name := path.Split(document)
	return model.ModuleOrigin{Kind: model.Policy, Scope: strings.TrimSuffix(namespace, "/"), Name: name}
}

// mergeErr returns the reason if no model can be written.
func (in Input) mergeErr() error {
	if in.MergeErr == nil && len(in.Merged.Model.GetTypeDefinitions()) == 0 {
		return errNoTypes
	}
	return in.MergeErr
}

// mergeReportOn returns the result of the merge for an AuthorizationModel.
func (in Input) mergeReportOn(m ModelObject) (model.ModuleReport, bool) {
	return in.Merged.ReportOf(in.originOf(m))
}

// recordedStoreID returns the id of the OpenFGA store in the Store's status.
func (in Input) recordedStoreID() string { return in.Store.Status.StoreID }

func (in Input) isDeleting() bool { return in.Store.DeletionTimestamp != nil }

// otherHolderOf returns the Store with the better claim to an OpenFGA store. Another Store that records it has the better
// claim, unless this Store records it too and does not yield.
func (in Input) otherHolderOf(obs Observed, id string) (CompetingStore, bool) {
	for _, r := range in.Rivals {
		if r.Value.Status.StoreID == id && (in.recordedStoreID() != id || in.hasWeakerClaimThan(r, obs.storeNameOf(in, id))) {
			return r, true
		}
	}
	return CompetingStore{}, false
}

// isContestedStore reports whether a Store with another name records the same OpenFGA store. Then the name of the OpenFGA
// store decides.
func (in Input) isContestedStore(id string) bool {
	return slices.ContainsFunc(in.Rivals, func(r CompetingStore) bool { return r.Value.Status.StoreID == id && r.Key.Name != in.Key.Name })
}

// hasWeakerClaimThan reports whether another Store has the better claim to an OpenFGA store of a name. A Store of that name has it,
// and among equals the older Store.
func (in Input) hasWeakerClaimThan(r CompetingStore, name string) bool {
	if ours, theirs := name == in.Key.Name, name == r.Key.Name; ours != theirs {
		return theirs
	}
	a, b := r.Value.CreationTimestamp, in.Store.CreationTimestamp
	if !a.Equal(&b) {
		return a.Before(&b)
	}
	return r.Key.Cluster+"/"+r.Key.Name < in.Key.Cluster+"/"+in.Key.Name
}

// RequiredFinalizers returns the finalizers that a Store needs before anything is created for it. They include tuple-sync's if
// the Store declares tuples.
func RequiredFinalizers(s *corev1alpha1.Store) []string {
	if len(s.Spec.Tuples) > 0 {
		return []string{corev1alpha1.StoreFinalizer, corev1alpha1.TuplesFinalizer}
	}
	return []string{corev1alpha1.StoreFinalizer}
}

func hasFinalizer(o metav1.Object, finalizer string) bool {
	return slices.Contains(o.GetFinalizers(), finalizer)
}
