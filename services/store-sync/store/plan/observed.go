package plan

import (
	"slices"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
)

// Observed holds the state of OpenFGA that one pass has read so far. The zero value holds nothing.
type Observed struct {
	// Listed is true once Named holds every OpenFGA store with the Store's name, oldest first.
	Listed bool
	Named  []OpenFGAStore
	// Created is the OpenFGA store created in this pass.
	Created string
	// Found is the last store found by its id, Missing the last id not found. Absent holds all ids that were not found
	// or were deleted in this pass.
	Found   OpenFGAStore
	Missing string
	Absent  []string
	// Foreign holds the OpenFGA stores without proof that they belonged to deleted Stores, whatever NATS reports.
	Foreign []string
	// LatestOf is the store with the newest model Latest, which is nil if it has none. Written is true if this pass
	// wrote that model. Refused is OpenFGA's refusal of another model.
	LatestOf string
	Latest   *openfgav1.AuthorizationModel
	Written  bool
	Refused  error
	// OwnersOf is the store to which Owners belongs.
	OwnersOf string
	Owners   IAMStoreOwnerTuples
	// Renamed is true once the store has the Store's name. RenameErr is the refusal of that.
	Renamed   bool
	RenameErr error
	// Deleted is the store deleted in this pass.
	Deleted string
	// Forbidden is the API server's refusal to change our finalizer.
	Forbidden error
	// Released is true once our finalizer was removed from the Store in this pass.
	Released bool
}

// OpenFGAStore is an OpenFGA store.
type OpenFGAStore struct {
	ID, Name  string
	CreatedAt time.Time
}

// isKnownByName reports whether a list or the creation showed that the store has the Store's name.
func (obs Observed) isKnownByName(id string) bool {
	return id == obs.Created || slices.ContainsFunc(obs.Named, func(s OpenFGAStore) bool { return s.ID == id })
}

// isConfirmedInOpenFGA reports whether OpenFGA has confirmed the store. A model proves nothing: OpenFGA accepts models for stores
// that do not exist, and keeps those of deleted stores.
func (obs Observed) isConfirmedInOpenFGA(id string) bool {
	return obs.isKnownByName(id) || obs.Found.ID == id
}

// storeNameOf returns the name of an OpenFGA store, or "" if this pass has not read it.
func (obs Observed) storeNameOf(in Input, id string) string {
	switch {
	case obs.isKnownByName(id):
		return in.Key.Name
	case obs.Found.ID == id:
		return obs.Found.Name
	}
	return ""
}

// latestModel returns the newest model of the store, and false if this pass has not read it.
func (obs Observed) latestModel(id string) (*openfgav1.AuthorizationModel, bool) {
	switch id {
	case obs.LatestOf:
		return obs.Latest, true
	case obs.Created:
		return nil, true
	}
	return nil, false
}

// isAbsentStore reports whether this pass found that OpenFGA does not have a store.
func (obs Observed) isAbsentStore(id string) bool {
	return id == obs.Missing || id == obs.Deleted || slices.Contains(obs.Absent, id)
}

func (obs Observed) isForeignStoreID(id string) bool { return slices.Contains(obs.Foreign, id) }
