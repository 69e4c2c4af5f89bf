package tuplesync

import (
	"context"
	"errors"
	"fmt"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
)

func TestModelCacheIsBounded(t *testing.T) {
	c := newModelCache(nil)
	for i := range 2 * maxModels {
		model, err := plan.NewModel(&openfgav1.AuthorizationModel{Id: fmt.Sprint(i), SchemaVersion: "1.1"})
		if err != nil {
			t.Fatal(err)
		}
		c.Put(model)
		if c.Put(model); len(c.kept.Keys()) > maxModels {
			t.Fatalf("%d models are kept", len(c.kept.Keys()))
		}
		if kept, err := c.Get(t.Context(), "store", model.ID()); err != nil || kept != model {
			t.Fatalf("kept is %v, %v", kept, err)
		}
	}
}

// fakeModelReader is an OpenFGA that knows one model, or has an error for every question.
type fakeModelReader struct {
	model *openfgav1.AuthorizationModel
	err   error
	asked int
}

func (a *fakeModelReader) ReadModel(context.Context, string, string) (*openfgav1.AuthorizationModel, error) {
	a.asked++
	return a.model, a.err
}

func TestModelCacheReadsModelOnce(t *testing.T) {
	openFGA := &fakeModelReader{model: &openfgav1.AuthorizationModel{Id: "m", SchemaVersion: "1.1"}}
	c := newModelCache(openFGA)
	first, err := c.Get(t.Context(), "store", "m")
	if again, _ := c.Get(t.Context(), "store", "m"); err != nil || first == nil || again != first || openFGA.asked != 1 {
		t.Fatalf("got %v, then %v, with %d questions: %v", first, again, openFGA.asked, err)
	}
	c.Drop(first)
	c.Drop(first)
	openFGA.model, openFGA.err = nil, fga.ErrModelNotFound
	if lost, err := c.Get(t.Context(), "store", "m"); err != nil || lost != nil || openFGA.asked != 2 {
		t.Errorf("got %v with %d questions: %v; the server has lost it", lost, openFGA.asked, err)
	}
}

func TestModelCacheDoesNotCacheOutage(t *testing.T) {
	down := fault.Unavailable(errors.New("connection refused"))
	for name, c := range map[string]struct {
		store, model string
		err, want    error
		asked        int
	}{
		"no store yet":           {"", "m", down, nil, 0},
		"no model yet":           {"store", "", down, nil, 0},
		"the model is not there": {"store", "m", fga.ErrModelNotFound, nil, 2},
		"the store is not there": {"store", "m", fga.ErrStoreNotFound, nil, 2},
		"an outage":              {"store", "m", down, down, 2},
	} {
		t.Run(name, func(t *testing.T) {
			openFGA := &fakeModelReader{err: c.err}
			cache := newModelCache(openFGA)
			for range 2 { // An absence is not cached: the model may appear later.
				if got, err := cache.Get(t.Context(), c.store, c.model); got != nil || !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
					t.Errorf("got %v, %v; want %v", got, err, c.want)
				}
			}
			if openFGA.asked != c.asked {
				t.Errorf("%d questions, want %d", openFGA.asked, c.asked)
			}
		})
	}
}
