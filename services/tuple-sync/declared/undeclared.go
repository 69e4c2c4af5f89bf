package declared

import (
	"slices"
	"time"

	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// UndeclaredTuples returns the tuples of an OpenFGA store that no object declares, with their fate. written is when OpenFGA
// wrote each of these tuples.
func (s *State) UndeclaredTuples(storeID string, model *plan.Model, held []tuple.Tuple, written map[tuple.ID]time.Time) []plan.UndeclaredTuple {
	iam, _ := s.Stores.Get(s.iam)
	in := plan.Input{StoreID: storeID, Model: model, Written: written, Reserved: iam.Value != nil && iam.Value.Status.StoreID == storeID}
	for _, o := range slices.Concat(s.liveObjectsOf(storeID), s.deletedObjectsOf(storeID)) {
		if o.IsStore && o.TargetStoreID == storeID {
			in.Removals, _ = o.decodeRemovedTuples(storeID) // An unreadable record counts as empty.
		}
		o.Unwritable = o.unreadable != nil
		in.Owners = append(in.Owners, o.Owner)
	}
	return plan.FindUndeclaredTuples(in, held)
}
