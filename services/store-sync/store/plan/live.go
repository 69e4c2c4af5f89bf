package plan

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// recordedLiveText returns the recorded live text of an AuthorizationModel, if it was recorded for this very Store.
func (in Input) recordedLiveText(m ModelObject) *corev1alpha1.LiveModel {
	if live := m.Value.Status.Live; live != nil && in.Store != nil && live.StoreUID == in.Store.UID {
		return live
	}
	return nil
}

// lastLiveText returns the text that stays if the module's own text cannot be part of the model. An object in deletion has
// none.
func (in Input) lastLiveText(m ModelObject) string {
	if live := in.recordedLiveText(m); live != nil && m.Value.DeletionTimestamp == nil {
		return live.Model
	}
	return ""
}

// nextLiveRecord returns the record of the live text that the AuthorizationModel's status must hold once the merge is live.
func (in Input) nextLiveRecord(m ModelObject) *corev1alpha1.LiveModel {
	report, _ := in.mergeReportOn(m)
	was := in.recordedLiveText(m)
	switch next := (&corev1alpha1.LiveModel{StoreUID: in.Store.UID, Generation: m.Value.Generation, Model: report.Live}); {
	case report.Live == "":
		return nil
	case was != nil && was.Model == report.Live:
		return was
	case was != nil && report.Live != m.Value.Spec.Model: // A part of the earlier text is live.
		next.Generation = was.Generation
		return next
	default:
		return next
	}
}

// liveDiscoveredText returns the live text of a discovered module. A Store of an earlier release has no such record; there
// all discovered modules count as live.
func (in Input) liveDiscoveredText(m model.Module) string {
	live := in.Store.Status.Live
	if live == nil || m.Origin.Kind != model.Discovered {
		return ""
	}
	if live.Discovered == nil {
		return m.DSL
	}
	i := slices.IndexFunc(live.Discovered, func(d corev1alpha1.LiveDiscovered) bool { return d.Source == m.Origin.String() })
	if i < 0 {
		return ""
	}
	return cmp.Or(live.Discovered[i].Model, m.DSL)
}

// nextLiveCoreRecord returns the record of live core and discovered modules that the Store's status must hold once the merge
// is live.
func (in Input) nextLiveCoreRecord() *corev1alpha1.LiveCoreModule {
	was, text := in.Store.Status.Live, in.coreMergeReport().Live
	next := &corev1alpha1.LiveCoreModule{Generation: in.Store.Generation, CoreModule: text, Discovered: in.nextDiscoveredRecords()}
	if was != nil && (was.CoreModule == text || text != in.Store.Spec.CoreModule) {
		next.Generation = was.Generation
	}
	if text == "" || equality.Semantic.DeepEqual(was, next) {
		return was
	}
	return next
}

// nextDiscoveredRecords returns what the status of the Store must say is live of discovered modules. It is never nil, which would count as
// the missing record of an earlier release.
func (in Input) nextDiscoveredRecords() []corev1alpha1.LiveDiscovered {
	live := []corev1alpha1.LiveDiscovered{}
	for _, r := range in.Merged.Reports {
		if r.Origin.Kind != model.Discovered || r.Live == "" {
			continue
		}
		d := corev1alpha1.LiveDiscovered{Source: r.Origin.String(), Model: r.Live}
		if slices.ContainsFunc(in.Provided, func(m model.Module) bool { return m.Origin == r.Origin && m.DSL == r.Live }) {
			d.Model = ""
		}
		live = append(live, d)
	}
	return live
}

// coreMergeReport returns the result of the merge for the core module.
func (in Input) coreMergeReport() model.ModuleReport {
	if len(in.Merged.Reports) == 0 {
		return model.ModuleReport{}
	}
	return in.Merged.Reports[0]
}

// removesLiveCorePart reports whether the merge removes a part of the core module, or of a discovered one, that the status
// still records as live.
func (in Input) removesLiveCorePart() bool {
	takes := slices.ContainsFunc(in.Merged.Reports, func(r model.ModuleReport) bool {
		return r.Takes && (r.Origin.Kind == model.Core || r.Origin.Kind == model.Discovered)
	})
	return takes && in.nextLiveCoreRecord() != in.Store.Status.Live
}

// removesLivePart reports the same for an AuthorizationModel.
func (in Input) removesLivePart(m ModelObject) bool {
	report, _ := in.mergeReportOn(m)
	lost := report.Takes || m.isEmpty() && m.Value.Status.Live != nil
	return lost && in.ownsStatusOf(m) && in.nextLiveRecord(m) != in.recordedLiveText(m)
}

// ownsStatusOf reports whether this service writes the status of an AuthorizationModel.
func (in Input) ownsStatusOf(m ModelObject) bool {
	return m.Key.Cluster == in.Key.Cluster && m.Value.DeletionTimestamp == nil
}

// removesAnyLivePart reports whether the next model removes a live part before its object's status records that. After a crash at
// that point, an invalid edit would restore the removed part.
func (in Input) removesAnyLivePart() bool {
	return in.removesLiveCorePart() || slices.ContainsFunc(in.Modules, in.removesLivePart)
}

// StatusesToWriteBeforeModel returns the statuses to write before the model. They equal the present ones, except for
// the new live texts and the cleared digests of texts that are no longer in the model.
func StatusesToWriteBeforeModel(in Input) (store *corev1alpha1.StoreStatus, modules map[event.Key]corev1alpha1.AuthorizationModelStatus) {
	outdated := in.OutdatedDigestKeys()
	if takes := in.removesLiveCorePart(); takes || slices.Contains(outdated, in.Key) {
		s := OwnedStoreStatus(in.Store.Status)
		if s.ModelDigest = ""; takes {
			s.Live = in.nextLiveCoreRecord()
		}
		store = &s
	}
	modules = map[event.Key]corev1alpha1.AuthorizationModelStatus{}
	for _, m := range in.Modules {
		if takes := in.removesLivePart(m); takes || slices.Contains(outdated, m.Key) {
			s := OwnedModuleStatus(m.Value.Status)
			if s.ModelDigest = ""; takes {
				s.Live = in.nextLiveRecord(m)
			}
			modules[m.Key] = s
		}
	}
	return store, modules
}
