package plan

import (
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// Outdated are the objects here with a digest of what the next model will not have. Were it still
// there afterwards, an object whose old text is put back would seem to be live.
func (in Input) Outdated() []event.Key {
	var keys []event.Key
	if digest := in.Store.Status.ModelDigest; digest != "" && digest != in.Store.ModelDigest() {
		keys = append(keys, in.Key)
	}
	for _, m := range in.Modules {
		digest := m.Value.Status.ModelDigest
		if digest == "" || m.Key.Cluster != in.Key.Cluster || m.Value.DeletionTimestamp != nil {
			continue
		}
		report, _ := in.report(m)
		if digest != m.Value.ModelDigest(in.recorded()) || report.State == model.Rejected && !m.empty() {
			keys = append(keys, m.Key)
		}
	}
	return keys
}
