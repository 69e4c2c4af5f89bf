package tuplesync

import (
	"context"
	"errors"
	"sync"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/tuple-sync/plan"
)

// maxModels bounds how many models are kept; one may take 300 KiB.
const maxModels = 128

// models keeps authorization models, which never change, by id.
type models struct {
	openFGA modelReader

	mu   sync.Mutex
	kept map[string]*plan.Model
}

type modelReader interface {
	ReadModel(ctx context.Context, storeID, modelID string) (*openfgav1.AuthorizationModel, error)
}

func newModels(openFGA modelReader) *models {
	return &models{openFGA: openFGA, kept: map[string]*plan.Model{}}
}

// get finds a model; nil when the store has no such.
func (m *models) get(ctx context.Context, storeID, modelID string) (*plan.Model, error) {
	if storeID == "" || modelID == "" {
		return nil, nil //nolint:nilnil // No model is an answer.
	}
	m.mu.Lock()
	model, ok := m.kept[modelID]
	m.mu.Unlock()
	if ok {
		return model, nil
	}
	read, err := m.openFGA.ReadModel(ctx, storeID, modelID)
	if errors.Is(err, fga.ErrModelNotFound) || errors.Is(err, fga.ErrStoreNotFound) {
		return nil, nil //nolint:nilnil // As above.
	}
	if err != nil {
		return nil, err
	}
	if model, err = plan.NewModel(read); err != nil {
		return nil, err
	}
	m.put(model)
	return model, nil
}

// put keeps a model, in the place of any other when there are too many.
func (m *models) put(model *plan.Model) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.kept {
		if len(m.kept) < maxModels {
			break
		}
		delete(m.kept, id)
	}
	m.kept[model.ID()] = model
}

func (m *models) drop(model *plan.Model) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.kept, model.ID())
}
