//go:build integration

package model_test

import (
	"fmt"
	"slices"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/server"
	"github.com/openfga/openfga/pkg/storage/memory"
	"google.golang.org/protobuf/proto"

	"github.com/entail-dev/entail/services/store-sync/model"
)

// store is a store in a real OpenFGA server in this process.
type store struct {
	server *server.Server
	id     string
}

func newStore(t *testing.T) store {
	t.Helper()
	s := server.MustNewServerWithOpts(server.WithDatastore(memory.New()))
	t.Cleanup(s.Close)
	created, err := s.CreateStore(t.Context(), &openfgav1.CreateStoreRequest{Name: "model-test"})
	if err != nil {
		t.Fatal(err)
	}
	return store{server: s, id: created.GetId()}
}

// roundTrip writes a model and reads it back.
func (s store) roundTrip(t *testing.T, m *openfgav1.AuthorizationModel) (*openfgav1.AuthorizationModel, error) {
	t.Helper()
	written, err := s.server.WriteAuthorizationModel(t.Context(), &openfgav1.WriteAuthorizationModelRequest{
		StoreId: s.id, SchemaVersion: m.GetSchemaVersion(), TypeDefinitions: m.GetTypeDefinitions(), Conditions: m.GetConditions(),
	})
	if err != nil {
		return nil, err
	}
	read, err := s.server.ReadAuthorizationModel(t.Context(), &openfgav1.ReadAuthorizationModelRequest{StoreId: s.id, Id: written.GetAuthorizationModelId()})
	if err != nil {
		t.Fatal(err)
	}
	return read.GetAuthorizationModel(), nil
}

func TestServerAcceptsMergedModels(t *testing.T) {
	var many []model.Module
	for i := range 97 {
		many = append(many, resource(i))
	}
	s := newStore(t)
	for name, modules := range map[string][]model.Module{
		"core alone":            nil,
		"every feature":         {named("various", various)},
		"a hundred types":       many,
		"the good beside a bad": {named("various", various), named("wrong", extension("owner", "[nobody]"))},
		"names as long as can be": {named("long", "module m23456789012345678901234567890123456789012345678\n\n"+
			"extend type account\n  relations\n    define r2345678901234567890123456789012345678901234567890: [user]\n")},
	} {
		t.Run(name, func(t *testing.T) {
			merged := mustMerge(t, modules...).Model
			read, err := s.roundTrip(t, merged)
			if err != nil {
				t.Fatal(err)
			}
			if !model.Equal(read, merged) {
				t.Errorf("the server returns another model:\n%v\n%v", merged, read)
			}
			changed := proto.CloneOf(read)
			changed.TypeDefinitions[0].Type += "x"
			if model.Equal(changed, merged) {
				t.Error("a changed model is equal")
			}
		})
	}
}

// allModulesLive reports whether all modules are part of the model.
func allModulesLive(r model.MergeResult) bool {
	return !slices.ContainsFunc(r.Reports, func(r model.ModuleReport) bool { return r.State != model.Merged })
}

func TestLimitsEqualServerLimits(t *testing.T) {
	s := newStore(t)
	for types := 99; types <= 102; types++ {
		var modules []model.Module
		for i := range types - 3 {
			modules = append(modules, resource(i))
		}
		merged, mergeErr := model.Merge(coreModule(core), modules, model.Limits{Types: 1000})
		if mergeErr != nil {
			t.Fatal(mergeErr)
		}
		_, err := s.roundTrip(t, merged.Model)
		if merged, _ = model.Merge(coreModule(core), modules, model.Limits{}); (err == nil) != allModulesLive(merged) {
			t.Errorf("with %d types the server says %v, Merge %v", types, err, merged.Reports)
		}
	}
	merged := mustMerge(t, named("various", various)).Model
	size := proto.Size(merged) + len("\n\x1a01HVMMBCMGZNT3SED4Z17ECXCA")
	for _, limit := range []int{size - 1, size} {
		strict := server.MustNewServerWithOpts(server.WithDatastore(memory.New()), server.WithMaxAuthorizationModelSizeInBytes(limit))
		t.Cleanup(strict.Close)
		_, err := store{server: strict, id: s.id}.roundTrip(t, merged)
		fitting, _ := model.Merge(coreModule(core), []model.Module{named("various", various)}, model.Limits{Bytes: limit})
		if (err == nil) != allModulesLive(fitting) || (err == nil) != (limit == size) {
			t.Errorf("with %d of %d bytes the server says %v, Merge %v", limit, size, err, fitting.Reports)
		}
	}
}

func TestServerRefusesRejectedModules(t *testing.T) {
	s := newStore(t)
	good := mustMerge(t).Model
	for name, change := range map[string]func(*openfgav1.AuthorizationModel){
		"a long module name": func(m *openfgav1.AuthorizationModel) { m.TypeDefinitions[0].Metadata.Module = fmt.Sprintf("%051d", 0) },
		"a long type name":   func(m *openfgav1.AuthorizationModel) { m.TypeDefinitions[2].Type = fmt.Sprintf("%0255d", 0) },
		"a reserved name": func(m *openfgav1.AuthorizationModel) {
			relations := m.GetTypeDefinitions()[0].GetRelations()
			relations["self"] = relations["parent"]
		},
		"a file with a dot": func(m *openfgav1.AuthorizationModel) {
			m.TypeDefinitions[0].Metadata.SourceInfo = &openfgav1.SourceInfo{File: "a.b.fga"}
		},
		"26 conditions": func(m *openfgav1.AuthorizationModel) {
			for i := range 26 {
				c := fmt.Sprintf("c%d", i)
				m.Conditions[c] = &openfgav1.Condition{Name: c, Expression: "true"}
			}
		},
		"an inline expression": func(m *openfgav1.AuthorizationModel) {
			m.TypeDefinitions[0].Metadata.Relations["parent"].DirectlyRelatedUserTypes[0].Condition = "$expression"
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := proto.CloneOf(good)
			if changed.Conditions == nil {
				changed.Conditions = map[string]*openfgav1.Condition{}
			}
			change(changed)
			if _, err := s.roundTrip(t, changed); err == nil {
				t.Error("the server takes it")
			}
		})
	}
}
