//go:build integration

package storesync_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/store-sync/model"
	policies "github.com/entail-dev/entail/services/store-sync/policymodule/plan"
)

const (
	tortureStores  = 5
	tortureModules = 12
	tortureParts   = 4
)

func TestStoreSyncConvergesUnderRandomFaults(t *testing.T) {
	b := newTestEnv(t)
	torture := &testenv.DisruptionSuite{
		Env: b.Env, Reflector: b.StartReflector(), Service: topology.StoreSync, OpenFGA: true,
		Serve:        func() *testenv.RunningService { return b.serve(short) },
		RandomChange: b.happen, CheckBackend: b.asDeclared,
		Rounds: 4, ChangesPerDisruption: 6, ChangeInterval: 25 * time.Millisecond, ConvergeTimeout: 2 * soon, FailurePercent: 12,
	}
	torture.Run()
}

// happen makes one random change, as users do.
func (b *testEnv) happen(r *rand.Rand) {
	b.T.Helper()
	store, module := fmt.Sprintf("store-%d", r.IntN(tortureStores)), fmt.Sprintf("module-%d", r.IntN(tortureModules))
	switch n := r.IntN(14); {
	case n >= 12:
		b.remove(kinds.PolicyDocuments(), fmt.Sprintf("part-%d", r.IntN(tortureParts)))
	case n >= 10:
		b.part(r, r.IntN(tortureParts), store)
	case n < 3:
		b.applyStore(store, func(s *corev1alpha1.StoreSpec) {
			s.CoreModule = []string{coreV1, coreV1 + "\ntype drawer\n", "module broken"}[r.IntN(3)]
		})
	case n < 7:
		b.applyModule(module, store, []string{dsl("folder"), dsl(strings.ReplaceAll(module, "-", "")), "nonsense"}[r.IntN(3)])
	case n < 9:
		b.remove(kinds.AuthorizationModels(), module)
	default:
		b.remove(kinds.Stores(), store)
	}
}

// part registers a part of a policy. Each type refers to a type of another part, or to one that does not exist.
func (b *testEnv) part(r *rand.Rand, i int, store string) {
	b.T.Helper()
	up := []int{i, (i + 1) % tortureParts, tortureParts}[r.IntN(3)]
	b.register(fmt.Sprintf("part-%d", i), store, fmt.Sprintf(
		"\nresourceTypes:\n  - {name: part%d, idPrefix: part%d, relationships: [{relation: up, targetTypes: [{name: part%d}]}]}", i, i, up))
}

// remove deletes an object that may not exist.
func (b *testEnv) remove(kind kinds.Kind, name string) {
	b.T.Helper()
	var api dynamic.ResourceInterface = b.ResourceClient(kind)
	if kind == kinds.PolicyDocuments() {
		api = b.ResourceClient(kind).Namespace("default")
	}
	err := api.Delete(b.T.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		b.T.Fatal(err)
	}
}

// asDeclared compares every OpenFGA store with the desired state of the objects.
func (b *testEnv) asDeclared() error {
	b.T.Helper()
	declared := map[string]corev1alpha1.Store{}
	for _, u := range b.List(kinds.Stores()).Items {
		var s corev1alpha1.Store
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
			return err
		}
		declared[s.Name] = s
	}
	modules, made := map[string][]model.Module{}, map[string]policies.Input{}
	for _, u := range b.List(kinds.AuthorizationModels()).Items {
		var m corev1alpha1.AuthorizationModel
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &m); err != nil {
			return err
		}
		origin := model.ModuleOrigin{Kind: model.AuthorizationModel, Name: m.Name}
		if m.Annotations[corev1alpha1.DocumentAnnotation] != "" {
			origin.Kind = model.Policy
			policy := made[m.Spec.StoreRef.Name]
			policy.Has = append(policy.Has, &m)
			made[m.Spec.StoreRef.Name] = policy
		}
		module := model.Module{Origin: origin, DSL: m.Spec.Model, Created: m.CreationTimestamp.Time}
		if live := m.Status.Live; live != nil && live.StoreUID == declared[m.Spec.StoreRef.Name].UID && m.DeletionTimestamp == nil {
			module.Live = live.Model
		}
		modules[m.Spec.StoreRef.Name] = append(modules[m.Spec.StoreRef.Name], module)
	}
	for _, u := range b.List(kinds.PolicyDocuments()).Items {
		var d iaplv1alpha1.PolicyDocument
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &d); err != nil {
			return err
		}
		policy := made[d.Spec.StoreRef.Name]
		policy.Documents = append(policy.Documents, policies.Document{
			Name: d.Namespace + "/" + d.Name, UID: string(d.UID), Present: &d.Spec.Policy, Created: d.CreationTimestamp.Time,
		})
		made[d.Spec.StoreRef.Name] = policy
	}
	for i := range tortureStores {
		name := fmt.Sprintf("store-%d", i)
		s, ok := declared[name]
		if err := b.storeAsDeclared(name, s, ok, modules[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		policy := made[name]
		policy.Store.Name = name
		if steps := policies.DecideDocuments(policy); ok && s.DeletionTimestamp == nil && len(steps.Apply)+len(steps.Delete) > 0 {
			return fmt.Errorf("%s: the policy is not what is registered: %+v", name, steps)
		}
	}
	return nil
}

func (b *testEnv) storeAsDeclared(name string, s corev1alpha1.Store, declared bool, modules []model.Module) error {
	b.T.Helper()
	ids := b.named(name)
	switch {
	case !declared && len(ids) > 0:
		return fmt.Errorf("not declared, OpenFGA has %v", ids)
	case declared && s.DeletionTimestamp != nil && len(modules) == 0:
		return errors.New("still being deleted")
	case !declared || s.DeletionTimestamp != nil:
		return nil
	case !slices.Equal(ids, []string{s.Status.StoreID}):
		return fmt.Errorf("OpenFGA has %v, the status names %q", ids, s.Status.StoreID)
	}
	core := model.Module{DSL: s.Spec.CoreModule}
	if s.Status.Live != nil {
		core.Live = s.Status.Live.CoreModule
	}
	want, err := model.Merge(core, modules, model.Limits{})
	if err != nil || len(want.Model.GetTypeDefinitions()) == 0 {
		return withoutRight(s.Status.Conditions, s.Generation, []string{"ModelSynced=False/InvalidCore"})
	}
	latest, err := b.hand.ReadLatestModel(b.T.Context(), s.Status.StoreID)
	if err != nil {
		return err
	}
	if !model.Equal(latest, want.Model) || latest.GetId() != s.Status.AuthorizationModelID {
		return fmt.Errorf("the latest model is %s, the status names %s; it is\n%v, want\n%v", latest.GetId(), s.Status.AuthorizationModelID, latest, want.Model)
	}
	return nil
}
