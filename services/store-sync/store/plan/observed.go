package plan

import (
	"slices"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
)

// Observed is what is known of OpenFGA so far in one pass. The zero value knows nothing.
type Observed struct {
	// Listed is true when Named holds every OpenFGA store of the Store's name, oldest first.
	Listed bool
	Named  []Store
	// Created is the OpenFGA store made in this pass.
	Created string
	// Found is the last store that was found by its id, Missing the id that was not. Absent are all
	// that were not, or were deleted in this pass.
	Found   Store
	Missing string
	Absent  []string
	// Foreign are those that are not known to have been those of Stores that are gone, whatever the bus tells.
	Foreign []string
	// LatestOf is the store whose newest model is Latest, which is nil when it has none. Written
	// is true when that was made in this pass; Refused says why OpenFGA would not have another.
	LatestOf string
	Latest   *openfgav1.AuthorizationModel
	Written  bool
	Refused  error
	// OwnersOf is the store of which Owners was found out.
	OwnersOf string
	Owners   Owners
	// Renamed is true when the store took the Store's name; RenameErr says why it could not.
	Renamed   bool
	RenameErr error
	// Deleted is the store deleted in this pass.
	Deleted string
	// Forbidden is why the API server lets us put on or take off no finalizer.
	Forbidden error
	// Released is true when our finalizer was taken off the Store in this pass.
	Released bool
}

// Store is an OpenFGA store.
type Store struct {
	ID, Name  string
	CreatedAt time.Time
}

// bears reports whether the store of this id is known to have the Store's name.
func (obs Observed) bears(id string) bool {
	return id == obs.Created || slices.ContainsFunc(obs.Named, func(s Store) bool { return s.ID == id })
}

// exists reports whether OpenFGA has confirmed the store. A model says nothing: OpenFGA takes
// models for stores that it does not have, and keeps those of stores that were deleted.
func (obs Observed) exists(id string) bool { return obs.bears(id) || obs.Found.ID == id }

// nameOf returns the name that an OpenFGA store bears, or "" while nobody has looked.
func (obs Observed) nameOf(in Input, id string) string {
	switch {
	case obs.bears(id):
		return in.Key.Name
	case obs.Found.ID == id:
		return obs.Found.Name
	}
	return ""
}

// latest is the newest model of the store; false while that is not known.
func (obs Observed) latest(id string) (*openfgav1.AuthorizationModel, bool) {
	switch id {
	case obs.LatestOf:
		return obs.Latest, true
	case obs.Created:
		return nil, true
	}
	return nil, false
}

// absent reports whether OpenFGA is known not to have a store.
func (obs Observed) absent(id string) bool {
	return id == obs.Missing || id == obs.Deleted || slices.Contains(obs.Absent, id)
}

func (obs Observed) foreign(id string) bool { return slices.Contains(obs.Foreign, id) }
