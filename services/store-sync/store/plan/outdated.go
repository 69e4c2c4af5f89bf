package plan

import (
	"slices"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// Outdated are the objects here with a digest of what the next model will not have. Were it still
// there afterwards, an object whose old text is put back would seem to be live.
func (in Input) Outdated() []event.Key {
	var keys []event.Key
	if digest := in.Store.Status.ModelDigest; digest != "" && (digest != in.Store.ModelDigest() || out(in.core())) {
		keys = append(keys, in.Key)
	}
	for _, m := range in.Modules {
		digest := m.Value.Status.ModelDigest
		if digest == "" || !in.ours(m) {
			continue
		}
		report, _ := in.report(m)
		if digest != m.Value.ModelDigest(in.recorded()) || out(report) && !m.empty() {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

// out reports whether a module is not part of the model as its object has it.
func out(r model.Report) bool {
	return slices.Contains([]model.State{model.Rejected, model.LastGoodLive}, r.State)
}
