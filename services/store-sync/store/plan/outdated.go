package plan

import (
	"slices"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// OutdatedDigestKeys returns the objects of this cluster whose recorded digest is of a text that the next model does not contain.
// If the digest stayed, an object with its old text restored would seem to be live.
func (in Input) OutdatedDigestKeys() []event.Key {
	var keys []event.Key
	if digest := in.Store.Status.ModelDigest; digest != "" && (digest != in.Store.ModelDigest() || isTextNotLive(in.coreMergeReport())) {
		keys = append(keys, in.Key)
	}
	for _, m := range in.Modules {
		digest := m.Value.Status.ModelDigest
		if digest == "" || !in.ownsStatusOf(m) {
			continue
		}
		report, _ := in.mergeReportOn(m)
		if digest != m.Value.ModelDigest(in.recordedStoreID()) || isTextNotLive(report) && !m.isEmpty() {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

// isTextNotLive reports whether the module's own text is not part of the model.
func isTextNotLive(r model.ModuleReport) bool {
	return slices.Contains([]model.MergeState{model.Rejected, model.LastGoodLive}, r.State)
}
