//go:build integration

package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/store-sync/model"
)

const core = `module core
type user
type doc
  relations
    define viewer: [user]
    define editor: [user]
`

// world is the objects, what a person does to them, and what they ask of OpenFGA.
type world struct {
	t       *testing.T
	random  *rand.Rand
	kube    *testbed.KubeServer
	objects dynamic.Interface
	openFGA *fga.Client
}

// act does one random thing that a person might do.
func (w *world) act() {
	w.t.Helper()
	store := fmt.Sprintf("store-%d", w.random.IntN(5))
	part := fmt.Sprintf("part-%d", w.random.IntN(8))
	switch w.random.IntN(10) {
	case 0:
		w.remove(kinds.Stores(), store)
	case 1, 2:
		w.remove(kinds.AuthorizationModels(), part)
	case 3, 4, 5:
		w.apply(kinds.Stores(), store, corev1alpha1.StoreSpec{CoreModule: core, Tuples: w.tuples("doc")})
	default:
		w.apply(kinds.AuthorizationModels(), part, corev1alpha1.AuthorizationModelSpec{
			StoreRef: corev1alpha1.StoreRef{Name: store}, Model: w.module(part), Tuples: w.tuples(strings.ReplaceAll(part, "-", "_")),
		})
	}
}

// module is one that fits, or now and then one that is broken.
func (w *world) module(part string) string {
	switch w.random.IntN(12) {
	case 0:
		return "module broken\ntype x\n  relations\n    define a: [nothing]\n"
	case 1:
		return "module broken\ntype x\n  relations\n    define a [user]\n"
	}
	name := strings.ReplaceAll(part, "-", "_")
	return fmt.Sprintf("module %s\ntype %s\n  relations\n    define viewer: [user]\n    define editor: [user]\n", name, name)
}

// tuples are some of a few, so that owners share them, on a type that may or may not be there;
// now and then one is invalid.
func (w *world) tuples(own string) []corev1alpha1.Tuple {
	all := []corev1alpha1.Tuple{}
	for range w.random.IntN(6) {
		of := "doc"
		if w.random.IntN(2) == 0 {
			of = own
		}
		relation := []string{"viewer", "editor"}[w.random.IntN(2)]
		all = append(all, corev1alpha1.Tuple{
			Object: fmt.Sprintf("%s:%d", of, w.random.IntN(3)), Relation: relation, User: fmt.Sprintf("user:%d", w.random.IntN(3)),
		})
	}
	if w.random.IntN(8) == 0 {
		all = append(all, corev1alpha1.Tuple{Object: "doc:1", Relation: "unknown", User: "user:1"})
	}
	return all
}

func (w *world) apply(kind kinds.Kind, name string, spec any) {
	w.t.Helper()
	w.kube.Apply(w.t, kind, name, spec)
}

func (w *world) remove(kind kinds.Kind, name string) {
	w.t.Helper()
	err := w.objects.Resource(kind.Served()).Delete(w.t.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
}

// settled is nil when OpenFGA holds exactly what the objects ask for.
func (w *world) settled() error {
	ctx := w.t.Context()
	stores, err := list[corev1alpha1.Store](ctx, w.objects, kinds.Stores())
	if err != nil {
		return err
	}
	parts, err := list[corev1alpha1.AuthorizationModel](ctx, w.objects, kinds.AuthorizationModels())
	if err != nil {
		return err
	}
	live := map[string]bool{}
	for name, store := range stores {
		if store.DeletionTimestamp != nil && !referred(name, parts) {
			return fmt.Errorf("store %s is not gone yet", name)
		}
		live[name] = true
		if store.DeletionTimestamp != nil {
			continue // Held by a module; it stays as it was.
		}
		if err := w.storeSettled(ctx, store, parts); err != nil {
			return fmt.Errorf("store %s: %w", name, err)
		}
	}
	for name, part := range parts {
		if part.DeletionTimestamp != nil {
			return fmt.Errorf("authorization model %s is not gone yet", name)
		}
	}
	for i := range 5 {
		name := fmt.Sprintf("store-%d", i)
		found, err := w.openFGA.FindStores(ctx, name)
		if err != nil {
			return err
		}
		if want := map[bool]int{true: 1}[live[name]]; len(found) != want {
			return fmt.Errorf("OpenFGA has %d stores named %s, want %d", len(found), name, want)
		}
	}
	return nil
}

// quiet is nil when nobody has written to any object for a while.
func (w *world) quiet() error {
	before, err := w.versions()
	if err != nil {
		return err
	}
	<-time.After(2 * time.Second)
	after, err := w.versions()
	if err == nil && !maps.Equal(before, after) {
		err = errors.New("objects are still being written")
	}
	return err
}

func (w *world) versions() (map[string]string, error) {
	versions := map[string]string{}
	for _, kind := range []kinds.Kind{kinds.Stores(), kinds.AuthorizationModels()} {
		found, err := w.objects.Resource(kind.Served()).List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, o := range found.Items {
			versions[kind.Resource+"/"+o.GetName()] = o.GetResourceVersion()
		}
	}
	return versions, nil
}

// referred tells whether a module keeps the store of that name from going.
func referred(store string, parts map[string]corev1alpha1.AuthorizationModel) bool {
	for _, p := range parts {
		if p.Spec.StoreRef.Name == store {
			return true
		}
	}
	return false
}

func (w *world) storeSettled(ctx context.Context, store corev1alpha1.Store, parts map[string]corev1alpha1.AuthorizationModel) error {
	var modules []model.Module
	declared := slices.Clone(store.Spec.Tuples)
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if p := parts[name]; p.Spec.StoreRef.Name == store.Name {
			m := model.Module{Origin: model.Origin{Kind: model.AuthorizationModel, Name: name}, DSL: p.Spec.Model, Created: p.CreationTimestamp.Time}
			live := p.Status.Live
			if live != nil && live.StoreUID == store.UID && p.DeletionTimestamp == nil {
				m.Live = live.Model
			}
			modules = append(modules, m)
			for _, t := range p.Spec.Tuples {
				// What a text gives waits while an earlier one is live.
				if m.Live == "" || m.Live == m.DSL || slices.Contains(p.Status.ManagedTuples, t) {
					declared = append(declared, t)
				}
			}
		}
	}
	merged, err := model.Merge(model.Module{DSL: store.Spec.CoreModule}, modules, model.Limits{})
	if err != nil {
		return err
	}
	held, err := w.openFGA.LatestModel(ctx, store.Status.StoreID)
	if err != nil {
		return err
	}
	if held == nil || !model.Equal(held, merged.Model) {
		return fmt.Errorf("the live model is not the merge of %d modules", len(modules)+1)
	}
	types := map[string]bool{}
	for _, d := range merged.Model.GetTypeDefinitions() {
		types[d.GetType()] = true
	}
	want := map[string]bool{}
	for _, t := range declared {
		of, _, _ := strings.Cut(t.Object, ":")
		if types[of] && t.Relation != "unknown" {
			want[t.Object+"#"+t.Relation+"@"+t.User] = true
		}
	}
	got := map[string]bool{}
	for t, err := range w.openFGA.ReadTuples(ctx, store.Status.StoreID) {
		if err != nil {
			return err
		}
		got[t.GetKey().GetObject()+"#"+t.GetKey().GetRelation()+"@"+t.GetKey().GetUser()] = true
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("tuples are %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	return nil
}

func list[T any](ctx context.Context, objects dynamic.Interface, kind kinds.Kind) (map[string]T, error) {
	found, err := objects.Resource(kind.Served()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	byName := map[string]T{}
	for _, item := range found.Items {
		data, err := item.MarshalJSON()
		if err != nil {
			return nil, err
		}
		var t T
		if err := json.Unmarshal(data, &t); err != nil {
			return nil, err
		}
		byName[item.GetName()] = t
	}
	return byName, nil
}
