package plan

import (
	"errors"
	"fmt"
	"maps"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"

	"github.com/entail-dev/entail/services/internal/fga/validation"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// Model is an authorization model that validates tuples.
type Model struct {
	types   *typesystem.TypeSystem
	refused map[tuple.Tuple]error
}

// NewModel reads a model that OpenFGA has accepted.
func NewModel(m *openfgav1.AuthorizationModel) (*Model, error) {
	types, err := typesystem.New(m)
	if err != nil {
		return nil, fmt.Errorf("reading model %s: %w", m.GetId(), err)
	}
	return &Model{types: types}, nil
}

// ID returns the ID of the model in its store.
func (m *Model) ID() string { return m.types.GetAuthorizationModelID() }

// Types returns the types of the model. Callers must not change them.
func (m *Model) Types() *typesystem.TypeSystem { return m.types }

// WithRefusedTuples returns m with tuples that the server refused although m allows them. The server decides: its version or its
// limits may differ.
func (m *Model) WithRefusedTuples(refused map[tuple.Tuple]error) *Model {
	all := make(map[tuple.Tuple]error, len(m.refused)+len(refused))
	for _, some := range []map[tuple.Tuple]error{m.refused, refused} {
		maps.Copy(all, some)
	}
	return &Model{types: m.types, refused: all}
}

// HasType reports whether the model has a type.
func (m *Model) HasType(typ string) bool {
	_, ok := m.types.GetTypeDefinition(typ)
	return ok
}

// ValidateTuple returns why a well-formed tuple cannot be in a store with this model.
func (m *Model) ValidateTuple(t tuple.Tuple) error {
	if err, ok := m.refused[t]; ok {
		return err
	}
	if err := validation.CheckTuple(m.types, t.ToOpenFGA()); err != nil {
		return errors.New(tuple.RefusalReason(err))
	}
	return nil
}
