//go:build integration

package storesync_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	storesync "github.com/entail-dev/entail/services/store-sync"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	soon   = 60 * time.Second
	calm   = 400 * time.Millisecond
	coreV1 = "module core\n\ntype user\n\ntype document\n  relations\n    define owner: [user]\n"
)

// dsl is a module that defines one type.
func dsl(name string) string {
	return fmt.Sprintf("module %s\n\ntype %s\n  relations\n    define reader: [user]\n", name, name)
}

// testEnv holds the servers around a store-sync.
type testEnv struct {
	*testenv.Env
	// hand is the test's own client of OpenFGA.
	hand *fga.Client
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	b := testenv.NewEnv(t)
	return &testEnv{b, b.OpenFGA.Client(t)}
}

// since returns functions that count from now on: all calls of OpenFGA, and all writes to the API server.
func (b *testEnv) since() (openFGA func() map[string]int, kube func() int) {
	calls, writes := b.OpenFGA.CallsByOp(), b.Kube.Writes()
	openFGA = func() map[string]int { return testenv.SubtractCounts(calls, b.OpenFGA.CallsByOp()) }
	return openFGA, func() int { return b.Kube.Writes() - writes }
}

func short(c *storesync.Config) { testenv.ShortenWaits(&c.Config) }

// serve starts a store-sync that ends with the test at the latest.
func (b *testEnv) serve(edit ...func(*storesync.Config)) *testenv.RunningService {
	b.T.Helper()
	cfg := storesync.Defaults()
	listener := b.ConfigureService(topology.StoreSync, &cfg.Config.Config)
	cfg.OpenFGA = b.OpenFGA.Config()
	for _, f := range edit {
		f(&cfg)
	}
	return b.Serve(listener, func(ctx context.Context) error { return storesync.Run(ctx, cfg) })
}

func storeSpec(edit ...func(*corev1alpha1.StoreSpec)) corev1alpha1.StoreSpec {
	spec := corev1alpha1.StoreSpec{CoreModule: coreV1}
	for _, f := range edit {
		f(&spec)
	}
	return spec
}

func (b *testEnv) applyStore(name string, edit ...func(*corev1alpha1.StoreSpec)) {
	b.T.Helper()
	b.Kube.Apply(b.T, kinds.Stores(), name, storeSpec(edit...))
}

func (b *testEnv) applyModule(name, store, text string) {
	b.T.Helper()
	b.Kube.Apply(b.T, kinds.AuthorizationModels(), name,
		corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: store}, Model: text})
}

// patch merges a patch into the Store demo.
func (b *testEnv) patch(patch string, subresources ...string) {
	b.T.Helper()
	b.Patch(kinds.Stores(), "demo", patch, subresources...)
}

func (b *testEnv) store(name string) *corev1alpha1.Store {
	b.T.Helper()
	var s corev1alpha1.Store
	if err := b.Get(kinds.Stores(), name, &s); err != nil {
		b.T.Fatal(err)
	}
	return &s
}

// await waits until a Store has these conditions, each "Type=Status/Reason", at its current generation.
func (b *testEnv) await(name string, want ...string) *corev1alpha1.Store {
	b.T.Helper()
	return testenv.AwaitObject(b.Env, kinds.Stores(), name, func(s *corev1alpha1.Store) error {
		return withoutRight(s.Status.Conditions, s.Generation, want)
	})
}

// awaitModule does the same for an AuthorizationModel.
func (b *testEnv) awaitModule(name string, want ...string) *corev1alpha1.AuthorizationModel {
	b.T.Helper()
	return testenv.AwaitObject(b.Env, kinds.AuthorizationModels(), name, func(m *corev1alpha1.AuthorizationModel) error {
		return withoutRight(m.Status.Conditions, m.Generation, want)
	})
}

func withoutRight(has []metav1.Condition, generation int64, want []string) error {
	for _, w := range want {
		found := slices.ContainsFunc(has, func(c metav1.Condition) bool {
			return fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason) == w && c.ObservedGeneration == generation
		})
		if !found {
			return fmt.Errorf("no %s at generation %d in %+v", w, generation, has)
		}
	}
	return nil
}

func messageOf(conditions []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

// types returns the types of the live model of the Store demo.
func (b *testEnv) types() []string {
	b.T.Helper()
	m, err := b.hand.ReadLatestModel(b.T.Context(), b.store("demo").Status.StoreID)
	if err != nil {
		b.T.Fatal(err)
	}
	var names []string
	for _, t := range m.GetTypeDefinitions() {
		names = append(names, t.GetType())
	}
	slices.Sort(names)
	return names
}

func (b *testEnv) expectTypes(want ...string) {
	b.T.Helper()
	slices.Sort(want)
	if got := b.types(); !slices.Equal(got, want) {
		b.T.Errorf("the model has the types %v, want %v", got, want)
	}
}

// named returns the ids of the OpenFGA stores with a name.
func (b *testEnv) named(name string) []string {
	b.T.Helper()
	stores, err := b.hand.FindStores(b.T.Context(), name)
	if err != nil {
		b.T.Fatal(err)
	}
	ids := make([]string, len(stores))
	for i, s := range stores {
		ids[i] = s.ID
	}
	return ids
}
