//go:build integration

package tuplesync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	tuplesync "github.com/entail-dev/entail/services/tuple-sync"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	soon = 60 * time.Second
	// docs is a model of documents, folders one of folders too.
	docs = `model
  schema 1.1
type user
type document
  relations
    define owner: [user]
    define viewer: [user] or owner
`
	folders = docs + `type folder
  relations
    define reader: [user]
`
)

// testEnv is the surroundings of a tuple-sync; the tests do what store-sync does.
type testEnv struct {
	*testenv.Env
	// hand is the test's own on OpenFGA.
	hand *fga.Client
}

func newTestEnv(t testing.TB) *testEnv {
	t.Helper()
	b := testenv.NewEnv(t)
	return &testEnv{b, b.OpenFGA.Client(t)}
}

func short(c *tuplesync.Config) { testenv.ShortenWaits(&c.Config) }

// serve starts a tuple-sync that ends with the test at the latest.
func (b *testEnv) serve(edit ...func(*tuplesync.Config)) *testenv.RunningService {
	b.T.Helper()
	cfg := tuplesync.Defaults()
	listener := b.ConfigureService(topology.TupleSync, &cfg.Config.Config)
	cfg.OpenFGA = b.OpenFGA.Config()
	for _, f := range edit {
		f(&cfg)
	}
	return b.Serve(listener, func(ctx context.Context) error { return tuplesync.Run(ctx, cfg) })
}

// tuple reads object#relation@user.
func tuple(text string) corev1alpha1.Tuple {
	object, rest, _ := strings.Cut(text, "#")
	relation, user, _ := strings.Cut(rest, "@")
	return corev1alpha1.Tuple{Object: object, Relation: relation, User: user}
}

func tuples(texts ...string) []corev1alpha1.Tuple {
	list := make([]corev1alpha1.Tuple, len(texts))
	for i, text := range texts {
		list[i] = tuple(text)
	}
	return list
}

// many are n tuples from the given number on.
func many(from, n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("document:%03d#viewer@user:1", from+i))
	}
	return list
}

func (b *testEnv) store(name string, texts ...string) {
	b.T.Helper()
	b.Kube.Apply(b.T, kinds.Stores(), name, corev1alpha1.StoreSpec{CoreModule: "module core", Tuples: tuples(texts...)})
}

func (b *testEnv) module(name, store string, texts ...string) {
	b.T.Helper()
	b.Kube.Apply(b.T, kinds.AuthorizationModels(), name, corev1alpha1.AuthorizationModelSpec{
		StoreRef: corev1alpha1.StoreRef{Name: store}, Model: "module " + name, Tuples: tuples(texts...),
	})
}

// writeModel writes a model to an OpenFGA store.
func (b *testEnv) writeModel(storeID, dsl string) string {
	b.T.Helper()
	m, err := transformer.TransformDSLToProto(dsl)
	if err != nil {
		b.T.Fatal(err)
	}
	id, err := b.hand.WriteModel(b.T.Context(), storeID, m)
	if err != nil {
		b.T.Fatal(err)
	}
	return id
}

// synced does what store-sync does for a Store: an OpenFGA store with a model, named in
// the status. It returns the store's id.
func (b *testEnv) synced(name, dsl string) string {
	b.T.Helper()
	id, err := b.hand.CreateStore(b.T.Context(), name)
	if err != nil {
		b.T.Fatal(err)
	}
	b.modelled(name, id, dsl)
	return id
}

func (b *testEnv) modelled(name, storeID, dsl string) {
	b.T.Helper()
	b.rule(kinds.Stores(), name, corev1alpha1.ModelSynced, map[string]any{
		"storeId": storeID, "authorizationModelId": b.writeModel(storeID, dsl),
	})
}

// merged is store-sync's word that a module is part of the model.
func (b *testEnv) merged(name string) {
	b.T.Helper()
	b.rule(kinds.AuthorizationModels(), name, corev1alpha1.Merged, map[string]any{})
}

func (b *testEnv) rule(kind kinds.Kind, name, condition string, status map[string]any) {
	b.T.Helper()
	u, err := b.ResourceClient(kind).Get(b.T.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.T.Fatal(err)
	}
	status["conditions"] = []metav1.Condition{{
		Type: condition, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: u.GetGeneration(), LastTransitionTime: metav1.Now(),
	}}
	b.ApplyStatus(topology.StoreSync, kind, name, status)
}

// declaringObject is a Store or an AuthorizationModel.
type declaringObject struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            corev1alpha1.StoreStatus `json:"status"`
}

// get reads a Store or an AuthorizationModel.
func (b *testEnv) get(kind kinds.Kind, name string) (*declaringObject, error) {
	f := &declaringObject{}
	if err := b.Get(kind, name, f); err != nil {
		return nil, err
	}
	return f, nil
}

// await waits until an object's TuplesSynced has this reason at its current generation, and returns the message.
func (b *testEnv) await(kind kinds.Kind, name, reason string) string {
	b.T.Helper()
	return b.AwaitCondition(kind, name, corev1alpha1.TuplesSynced, reason).Message
}

// holds reads what an OpenFGA store holds.
func (b *testEnv) holds(storeID string) []string {
	b.T.Helper()
	var texts []string
	for t, err := range b.hand.ReadTuples(b.T.Context(), storeID) {
		if err != nil {
			b.T.Fatal(err)
		}
		texts = append(texts, fmt.Sprintf("%s#%s@%s", t.GetKey().GetObject(), t.GetKey().GetRelation(), t.GetKey().GetUser()))
	}
	slices.Sort(texts)
	return texts
}

// awaitTuples waits until a store holds exactly these tuples.
func (b *testEnv) awaitTuples(storeID string, want ...string) {
	b.T.Helper()
	slices.Sort(want)
	testenv.Eventually(b.T, soon, func() error {
		if got := b.holds(storeID); !slices.Equal(got, want) {
			return fmt.Errorf("the store holds %d tuples, want %d: %.500v", len(got), len(want), got)
		}
		return nil
	})
}

// write changes a store behind tuple-sync's back.
func (b *testEnv) write(storeID string, add, remove []string) {
	b.T.Helper()
	keys := func(texts []string) []*openfgav1.TupleKey {
		var list []*openfgav1.TupleKey
		for _, text := range texts {
			t := tuple(text)
			list = append(list, &openfgav1.TupleKey{Object: t.Object, Relation: t.Relation, User: t.User})
		}
		return list
	}
	if err := b.hand.Write(b.T.Context(), storeID, "", keys(add), keys(remove)); err != nil {
		b.T.Fatal(err)
	}
}

func keyOf(kind kinds.Kind, name string) event.Key {
	return event.Key{Cluster: "local", GroupResource: kind.GroupResource, Name: name}
}

// errCut is the error of a connection that a test cuts.
var errCut = fault.Unavailable(errors.New("the line is cut"))

// mend ends all faults.
func (b *testEnv) mend() {
	b.OpenFGA.FailBefore(nil)
	b.Kube.FailBefore(nil)
}
