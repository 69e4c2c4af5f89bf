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

var errNoTypes = errors.New("no module defines a type, and OpenFGA takes no model without: add a type, such as `type user`")

// Input is what the view holds about one Store.
type Input struct {
	// Key of the Store. AuthorizationModels may refer to a Store that does not exist.
	Key event.Key
	// Store is nil unless it is alive. Gone is then its last state, where one is known.
	Store, Gone *corev1alpha1.Store
	// Earlier are the last states of those that had the name before Store or Gone.
	Earlier []*corev1alpha1.Store
	// Elsewhere is the Store if it lives in another cluster: what becomes of its modules is decided there.
	Elsewhere *corev1alpha1.Store
	// Change is the state of Store or Gone.
	Change event.Change
	// Modules are the AuthorizationModels that refer to the Store, in any order.
	Modules []Module
	// Provided are further modules of a live Store, such as those of discovered resources.
	Provided []model.Module
	// Rivals are the other live Stores of the same name or with the same OpenFGA store.
	Rivals []Rival
	// Merged is what the modules of a live Store come to; MergeErr is set when that is no model.
	Merged   model.Result
	MergeErr error
	// NameErr says why OpenFGA would refuse the Store's name.
	NameErr error
	// Resync asks for what an ordinary pass takes for granted: that the OpenFGA store still
	// exists, bears the right name, and is the only one that does.
	Resync bool
	// Now dates the conditions that change.
	Now metav1.Time
}

// Module is one AuthorizationModel.
type Module struct {
	event.Change
	Value *corev1alpha1.AuthorizationModel
}

// document is the PolicyDocument that the module was made of, "" if a person wrote it or an API asked for it.
func (m Module) document() string { return m.Value.Annotations[corev1alpha1.DocumentAnnotation] }

// FromDocument reports whether the module was made of a PolicyDocument.
func (m Module) FromDocument() bool { return m.document() != "" }

// empty reports whether the module was made of a document that declares nothing that a model has.
func (m Module) empty() bool { return m.document() != "" && m.Value.Spec.Model == "" }

// Rival is another live Store.
type Rival struct {
	event.Change
	Value *corev1alpha1.Store
}

// Sources returns the modules of the Store's model, with what was live of them: the core module, then the others in canonical order.
// It leaves out those of other clusters, because no API server here can confirm them, and a provided module whose place an
// AuthorizationModel takes: that one inherits what was live.
func Sources(in Input) (core model.Module, others []model.Module) {
	core = model.Module{DSL: in.Store.Spec.CoreModule}
	if live := in.Store.Status.Live; live != nil {
		core.Live = live.CoreModule
	}
	for _, m := range in.Modules {
		if m.empty() || m.Key.Cluster != in.Key.Cluster {
			continue
		}
		others = append(others, model.Module{
			Origin: in.origin(m), DSL: m.Value.Spec.Model, API: m.Value.Annotations[corev1alpha1.ResourceAnnotation],
			Fault: m.Value.Annotations[corev1alpha1.RejectedAnnotation], Live: in.lastLive(m), Created: m.Value.CreationTimestamp.Time,
		})
	}
	generated := len(others)
	for _, m := range in.Provided {
		m.Live = in.liveDiscovered(m)
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

// origin names the cluster only of an AuthorizationModel that lives in another one than the Store.
func (in Input) origin(m Module) model.Origin {
	if document := m.document(); document != "" && m.Key.Cluster == in.Key.Cluster {
		return DocumentOrigin(document)
	}
	o := model.Origin{Kind: model.AuthorizationModel, Name: m.Key.Name}
	if m.Key.Cluster != in.Key.Cluster {
		o.Scope = m.Key.Cluster
	}
	return o
}

// DocumentOrigin is that of the module of a PolicyDocument.
func DocumentOrigin(document string) model.Origin {
	namespace, name := path.Split(document)
	return model.Origin{Kind: model.Policy, Scope: strings.TrimSuffix(namespace, "/"), Name: name}
}

// mergeErr is why there is no model to write.
func (in Input) mergeErr() error {
	if in.MergeErr == nil && len(in.Merged.Model.GetTypeDefinitions()) == 0 {
		return errNoTypes
	}
	return in.MergeErr
}

// report finds what became of an AuthorizationModel in the merge.
func (in Input) report(m Module) (model.Report, bool) {
	origin := in.origin(m)
	i := slices.IndexFunc(in.Merged.Reports, func(r model.Report) bool { return r.Origin == origin })
	if i < 0 {
		return model.Report{}, false
	}
	return in.Merged.Reports[i], true
}

// recorded is the id of the OpenFGA store in the Store's status.
func (in Input) recorded() string { return in.Store.Status.StoreID }

func (in Input) deleting() bool { return in.Store.DeletionTimestamp != nil }

// holder returns the Store with the better claim to an OpenFGA store: one that records it, unless this Store records it, too,
// and does not yield.
func (in Input) holder(obs Observed, id string) (Rival, bool) {
	for _, r := range in.Rivals {
		if r.Value.Status.StoreID == id && (in.recorded() != id || in.yields(r, obs.nameOf(in, id))) {
			return r, true
		}
	}
	return Rival{}, false
}

// contested reports whether a Store of another name records the same OpenFGA store. The name that this bears then decides.
func (in Input) contested(id string) bool {
	return slices.ContainsFunc(in.Rivals, func(r Rival) bool { return r.Value.Status.StoreID == id && r.Key.Name != in.Key.Name })
}

// yields reports whether an OpenFGA store that two Stores record belongs to the other one: the Store whose name it bears,
// else the older.
func (in Input) yields(r Rival, name string) bool {
	if ours, theirs := name == in.Key.Name, name == r.Key.Name; ours != theirs {
		return theirs
	}
	a, b := r.Value.CreationTimestamp, in.Store.CreationTimestamp
	if !a.Equal(&b) {
		return a.Before(&b)
	}
	return r.Key.Cluster+"/"+r.Key.Name < in.Key.Cluster+"/"+in.Key.Name
}

// Finalizers are those that go on a Store before anything is made for it: tuple-sync's, too, where there will be tuples.
func Finalizers(s *corev1alpha1.Store) []string {
	if len(s.Spec.Tuples) > 0 {
		return []string{corev1alpha1.StoreFinalizer, corev1alpha1.TuplesFinalizer}
	}
	return []string{corev1alpha1.StoreFinalizer}
}

func finalized(o metav1.Object, finalizer string) bool {
	return slices.Contains(o.GetFinalizers(), finalizer)
}
