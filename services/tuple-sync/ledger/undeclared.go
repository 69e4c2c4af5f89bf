package ledger

import (
	"slices"

	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
)

// Undeclared lists which of the tuples that an OpenFGA store holds nobody declares, and what becomes of them.
func (s *State) Undeclared(storeID string, model *plan.Model, held []tuple.Tuple) []plan.Undeclared {
	iam, _ := s.Stores.Get(s.iam)
	in := plan.Input{StoreID: storeID, Model: model, Reserved: iam.Value != nil && iam.Value.Status.StoreID == storeID}
	for _, o := range slices.Concat(s.owners(storeID), s.deleted(storeID)) {
		o.Unwritable = o.unreadable != nil
		in.Owners = append(in.Owners, o.Owner)
	}
	return plan.FindUndeclared(in, held)
}
