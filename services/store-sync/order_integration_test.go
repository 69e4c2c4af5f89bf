//go:build integration

package storesync_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// heap returns objects that create, repeat, contradict and lack one another, in any order. No two of equal rank
// contradict each other. Otherwise the older one would win, and that depends on the order of creation.
func (b *testEnv) heap() []func() {
	define := func(d definition) func() { return func() { b.define(d) } }
	declare := func(name, text string) func() { return func() { b.applyModule(name, "demo", text) } }
	const long = "veryspecialthingsindeed"
	objects := []func(){
		func() { b.applyStore("demo", withAccounts) },
		declare("docs", dsl("folder")),
		declare("again", dsl("folder")),
		declare("rival", "module rival\n\ntype role\n"),
		declare("wrong", "module wrong\n\ntype x\n  relations\n    define r: [nobody]\n"),
		define(widgets("example.com", "demo")),
		define(widgets("example.org", "demo")),
		define(definition{"3d.example.com", "things", "Thing", "v1alpha1", "demo"}),
		define(definition{"aaa.long.group.example.com", long, "Special", "v1alpha1", "demo"}),
		define(definition{"bbb.long.group.example.com", long, "Special", "v1alpha1", "demo"}),
	}
	rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	return objects
}

// published waits until the stream holds everything. Barriers keep coming, so it looks at changes alone.
func (b *testEnv) published() {
	b.T.Helper()
	var last uint64
	since := time.Now()
	testenv.Eventually(b.T, soon, func() error {
		stream, err := b.JS.Stream(b.T.Context(), topology.Changes)
		if err != nil {
			return err
		}
		newest, err := stream.GetLastMsgForSubject(b.T.Context(), topology.ClusterFilters("local")[0])
		if err != nil {
			return err
		}
		if newest.Sequence != last {
			last, since = newest.Sequence, time.Now()
		}
		if time.Since(since) < calm {
			return errors.New("still busy")
		}
		return nil
	})
}

func TestModelBytesAreIndependentOfOrder(t *testing.T) {
	var first []byte
	for name, running := range map[string]bool{"all before the start": false, "once more": false, "one after the other": true, "in another order": true} {
		t.Run(name, func(t *testing.T) {
			b := newTestEnv(t)
			b.StartReflector()
			if running {
				b.serve()
			}
			for _, apply := range b.heap() {
				apply()
			}
			if b.published(); !running {
				b.serve()
			}
			b.awaitTypes("folder", "example_com_widget", "example_org_widget", "core_namespace", "rbac_authorization_k8s_io_role")
			b.AwaitNoCalls()
			if n := b.OpenFGA.WritesByOp()["WriteAuthorizationModel"]; n != 1 && !running {
				t.Errorf("%d models were written, want 1", n)
			}
			data := b.bytes()
			if first == nil {
				first = data
			}
			if string(data) != string(first) {
				t.Errorf("the model has other bytes: %d, of types %v", len(data), b.types())
			}
		})
	}
}

// bytes returns the live model of the Store demo in encoded form, without its id.
func (b *testEnv) bytes() []byte {
	b.T.Helper()
	live, err := b.hand.ReadLatestModel(b.T.Context(), b.store("demo").Status.StoreID)
	if err != nil {
		b.T.Fatal(err)
	}
	live.Id = ""
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(live)
	if err != nil {
		b.T.Fatal(err)
	}
	return data
}
