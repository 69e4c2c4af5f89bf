package store

import (
	"context"
	"errors"
	"fmt"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/encoding/protojson"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// GetModel returns the newest model in OpenFGA.
func (s *Server) GetModel(ctx context.Context, request *storev1.GetModelRequest) (*storev1.GetModelResponse, error) {
	found, err := s.findStore(ctx, request.GetName())
	if err != nil {
		return nil, err
	}
	latest, err := s.latestModel(ctx, found)
	if err != nil {
		return nil, err
	}
	dsl, err := model.RenderDSL(latest)
	if err != nil {
		return nil, err
	}
	json, err := protojson.Marshal(latest)
	if err != nil {
		return nil, fmt.Errorf("rendering model %s: %w", latest.GetId(), err)
	}
	response := &storev1.GetModelResponse{
		StoreId: found.Value.Status.StoreID, AuthorizationModelId: latest.GetId(), Dsl: dsl, Json: string(json), Modules: modulesToProto(found.Value),
	}
	// Only the merge that made a model holds the source of each definition.
	desired, err := s.merges.Merge(s.storeSnapshot(found))
	merged := err == nil && model.Equal(desired.Model, latest)
	if !merged {
		desired.Definitions = model.ListDefinitions(latest)
	}
	for _, d := range desired.Definitions {
		m := definitionToProto(d)
		if merged {
			m.Source = d.Origin.String()
		}
		response.Definitions = append(response.Definitions, m)
	}
	return response, nil
}

// DiffModel compares two models. The default for the first is the live model, for the second the desired one.
func (s *Server) DiffModel(ctx context.Context, request *storev1.DiffModelRequest) (*storev1.DiffModelResponse, error) {
	found, err := s.findStore(ctx, request.GetName())
	if err != nil {
		return nil, err
	}
	var from, to *openfgav1.AuthorizationModel
	if id := request.GetFromModelId(); id != "" {
		from, err = s.readModelByID(ctx, found, id)
	} else {
		from, err = s.latestModel(ctx, found)
	}
	if err != nil {
		return nil, err
	}
	if id := request.GetToModelId(); id != "" {
		to, err = s.readModelByID(ctx, found, id)
	} else {
		var desired model.MergeResult
		desired, err = s.merges.Merge(s.storeSnapshot(found))
		if to = desired.Model; err != nil {
			err = rpc.InvalidError("Store %q declares no valid model: %v", found.Key.Name, err)
		}
	}
	if err != nil {
		return nil, err
	}
	response := &storev1.DiffModelResponse{}
	response.Changes, err = diffToProto(from, to)
	return response, err
}

// storeSnapshot returns the state of a Store in the informer.
func (s *Server) storeSnapshot(found module.StoreObject) plan.Input {
	in := s.state.Snapshot(found.Key, plan.Observed{})
	in.Store = found.Value
	return in
}

// latestModel returns the newest model in OpenFGA.
func (s *Server) latestModel(ctx context.Context, found module.StoreObject) (*openfgav1.AuthorizationModel, error) {
	id := found.Value.Status.StoreID
	if id == "" {
		return nil, rpc.NotFoundError("Store %q has no OpenFGA store yet: %s", found.Key.Name, readinessMessage(found.Value.Status.Conditions))
	}
	latest, err := s.fga.ReadLatestModel(ctx, id)
	if err == nil && latest == nil {
		err = rpc.NotFoundError("OpenFGA store %s of Store %q has no model yet: %s", id, found.Key.Name, readinessMessage(found.Value.Status.Conditions))
	}
	return latest, err
}

// readModelByID returns the model with an id.
func (s *Server) readModelByID(ctx context.Context, found module.StoreObject, id string) (*openfgav1.AuthorizationModel, error) {
	m, err := s.fga.ReadModel(ctx, found.Value.Status.StoreID, id)
	if errors.Is(err, fga.ErrModelNotFound) || errors.Is(err, fga.ErrStoreNotFound) {
		err = rpc.NotFoundError("Store %q has no model %s", found.Key.Name, id)
	}
	return m, err
}

func diffToProto(from, to *openfgav1.AuthorizationModel) ([]*storev1.ModelChange, error) {
	found, err := model.Diff(from, to)
	if err != nil {
		return nil, err
	}
	messages := make([]*storev1.ModelChange, len(found))
	for i, c := range found {
		kind := storev1.ModelChange_KIND_CHANGED
		switch {
		case c.Added:
			kind = storev1.ModelChange_KIND_ADDED
		case c.Removed:
			kind = storev1.ModelChange_KIND_REMOVED
		case c.Before == c.After:
			kind = storev1.ModelChange_KIND_AFFECTED
		}
		messages[i] = &storev1.ModelChange{
			Kind: kind, Definition: definitionToProto(c.Definition), Before: c.Before, After: c.After, Gained: c.Gained, Lost: c.Lost,
		}
	}
	return messages, nil
}

func definitionToProto(d model.Definition) *storev1.Definition {
	return &storev1.Definition{Type: d.Type, Relation: d.Relation, Condition: d.Condition, Module: d.Module}
}
