package plan

import (
	"slices"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// Outdated returns the objects of this cluster whose recorded digest is of a text that the next model does not contain.
// If the digest stayed, an object with its old text restored would seem to be live.
func (in Input) Outdated() []event.Key {
	var keys []event.Key
	if digest := in.Store.Status.ModelDigest; digest != "" && (digest != in.Store.ModelDigest() || isOut(in.coreReport())) {
		keys = append(keys, in.Key)
	}
	for _, m := range in.Modules {
		digest := m.Value.Status.ModelDigest
		if digest == "" || !in.isOurs(m) {
			continue
		}
		report, _ := in.reportOn(m)
		if digest != m.Value.ModelDigest(in.recordedID()) || isOut(report) && !m.isEmpty() {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

// isOut reports whether the module's own text is not part of the model.
func isOut(r model.Report) bool {
	return slices.Contains([]model.State{model.Rejected, model.LastGoodLive}, r.State)
}
