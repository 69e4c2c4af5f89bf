//go:build integration

package storesync_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	storesync "github.com/entail-dev/entail/services/store-sync"
	"github.com/entail-dev/entail/services/store-sync/internal/validating"
)

const (
	storeMerged = "ModelSynced=True/Merged"
	partMerged  = "Merged=True/Merged"
)

// revokedRightEnv is a store-sync that lacks one right after the other.
type revokedRightEnv struct {
	*testEnv

	suite testenv.RightsSuite
}

func TestStoreSyncReportsEachMissingRight(t *testing.T) {
	r := &revokedRightEnv{testEnv: newTestEnv(t)}
	r.kcp()
	r.StartReflector()
	r.suite = testenv.RightsSuite{
		Env: r.Env, Service: topology.StoreSync, WebhookConfiguration: validating.Name, Log: &testenv.LogBuffer{}, Start: r.start, CreateObjects: r.fill, Triggers: r.uses(),
		AwaitIdle: func() { r.AwaitCaughtUp(topology.StoreSync) },
		CallWithoutRights: func(ctx context.Context, caller *http.Client, url string) error {
			_, err := storev1connect.NewStoreServiceClient(caller, url).GetStore(ctx, &storev1.GetStoreRequest{Name: "demo"})
			return err
		},
	}
	r.suite.Run(t)
	for _, held := range r.List(kinds.APIBindings()).Items { // The API server waits until their finalizers go.
		r.Delete(kinds.APIBindings(), held.GetName())
		r.awaitUnbound(held.GetName())
	}
}

func (r *revokedRightEnv) start() *testenv.RunningService {
	r.T.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.T.Fatal(err)
	}
	return r.serve(ordinary(), unprivileged, func(c *storesync.Config) {
		c.RPC.Auth, c.Admission.Listener, c.Admission.Service = rpc.AuthKubernetes, listener, "default/nowhere"
		c.Embed.Log = r.suite.Log.Logger(r.T, slog.LevelInfo)
	})
}

// fill creates an object of each followed kind.
func (r *revokedRightEnv) fill() {
	r.T.Helper()
	r.applyStore("demo", withAccounts)
	r.applyModule("docs", "demo", dsl("docs"))
	r.account("demo")
	r.export(widgets("example.com", ""))
	r.bind("widgets", "widgets.example.com")
	r.define(widgets("a.example", "demo"))
	r.applyStore("plain")
	r.register("tenant", "plain", tenantPart)
	r.protect("widget", "a.example/Widget", "widgets")
	r.await("demo", storeMerged)
	r.awaitModule("docs", partMerged)
	r.awaitDocument("tenant", partMerged)
	r.awaitProtected("widget", configured)
	r.awaitHeld("widgets", true)
}

// uses returns the operations that need each right.
func (r *revokedRightEnv) uses() map[string]testenv.RightTrigger {
	store := testenv.RightTrigger{
		RequireRight: func(c testenv.RightCase) { r.applyStore(c.Name) },
		AwaitDone:    func(c testenv.RightCase) { r.await(c.Name, storeMerged) },
	}
	iam := testenv.RightTrigger{
		RequireRight: func(testenv.RightCase) { r.removeIAM() },
		AwaitDone:    func(testenv.RightCase) { r.await("iam", storeMerged) },
	}
	generated := testenv.RightTrigger{
		RequireRight: func(c testenv.RightCase) { r.define(newPart(c, "demo")) },
		AwaitDone:    func(c testenv.RightCase) { r.awaitTypes(partType(c)) },
	}
	protected := testenv.RightTrigger{
		RequireRight: func(c testenv.RightCase) {
			r.protect(c.Name, "a.example/"+strings.ReplaceAll(c.Name, "p", "P"), c.Name+"s")
		},
		AwaitDone: func(c testenv.RightCase) { r.awaitProtected(c.Name, configured) },
	}
	merged := testenv.RightTrigger{
		RequireRight: func(c testenv.RightCase) { r.applyModule(c.Name, "demo", dsl(c.Name)) },
		AwaitDone:    func(c testenv.RightCase) { r.awaitModule(c.Name, partMerged) },
	}
	return map[string]testenv.RightTrigger{
		"get namespaces": {RequireRight: func(testenv.RightCase) { r.suite.Restart(r.removeIAM) }, AwaitDone: iam.AwaitDone},
		"create stores":  iam, "adopt stores": iam, "extend stores": generated,
		"patch stores": store, "patch stores/status": store, "record stores": store, "create events": store,
		"create authorizationmodels": generated, "patch authorizationmodels": generated,
		"patch authorizationmodels/status": merged, "record authorizationmodels": merged,
		"list authorizationmodels": { // A live module leaves the model.
			Prepare:      func(c testenv.RightCase) { merged.RequireRight(c); merged.AwaitDone(c) },
			RequireRight: func(c testenv.RightCase) { r.Delete(kinds.AuthorizationModels(), c.Name) },
			AwaitDone:    func(c testenv.RightCase) { r.awaitTypes("-" + c.Name) },
		},
		"delete authorizationmodels": {
			Prepare:      func(c testenv.RightCase) { generated.RequireRight(c); generated.AwaitDone(c) },
			RequireRight: func(c testenv.RightCase) { r.define(newPart(c, "")) },
			AwaitDone:    func(c testenv.RightCase) { r.awaitTypes("-" + partType(c)) },
		},
		"patch policydocuments/status": {
			RequireRight: func(c testenv.RightCase) { r.register(c.Name, "plain", projectPart) },
			AwaitDone:    func(c testenv.RightCase) { r.awaitDocument(c.Name, partMerged) },
		},
		"list protectedresources": { // A live kind leaves the model.
			Prepare:      func(c testenv.RightCase) { protected.RequireRight(c); protected.AwaitDone(c) },
			RequireRight: func(c testenv.RightCase) { r.Delete(kinds.ProtectedResources(), c.Name) },
			AwaitDone:    func(c testenv.RightCase) { r.awaitUnprotected("a.example/" + strings.ReplaceAll(c.Name, "p", "P")) },
		},
		"record protectedresources": protected, "patch protectedresources/status": protected,
		"patch protectedresources": { // A finalizer of software that does not run holds it.
			RequireRight: func(c testenv.RightCase) {
				r.SetFinalizers(c.Kind, "", "widget", iamv1alpha1.ProtectedResourceFinalizer)
			},
			AwaitDone: func(c testenv.RightCase) { r.AwaitNoFinalizers(c.Kind, "", "widget") },
		},
		"patch apibindings": {
			RequireRight: func(c testenv.RightCase) { r.bind(c.Name, "widgets.example.com") },
			AwaitDone:    func(c testenv.RightCase) { r.awaitHeld(c.Name, true) },
		},
	}
}

// newPart returns a definition from which a module is made.
func newPart(c testenv.RightCase, store string) definition {
	return definition{c.Name + ".example", "parts", "Part", "v1", store}
}

// partType returns the type that the module of [newPart] defines.
func partType(c testenv.RightCase) string { return c.Name + "_example_part" }

// awaitUnprotected waits until the model of IAM lacks a type.
func (r *revokedRightEnv) awaitUnprotected(typ string) {
	r.T.Helper()
	testenv.Eventually(r.T, soon, func() error {
		latest, err := r.hand.ReadLatestModel(r.T.Context(), r.store("iam").Status.StoreID)
		if err == nil && slices.ContainsFunc(latest.GetTypeDefinitions(), func(t *openfgav1.TypeDefinition) bool { return t.GetType() == typ }) {
			err = fmt.Errorf("the model still has %s", typ)
		}
		return err
	})
}

// removeIAM deletes the Store of IAM, with its OpenFGA store.
func (r *revokedRightEnv) removeIAM() {
	r.T.Helper()
	id := r.store("iam").Status.StoreID
	r.Delete(kinds.Stores(), "iam")
	r.SetFinalizers(kinds.Stores(), "", "iam")
	if err := r.hand.DeleteStore(r.T.Context(), id); err != nil {
		r.T.Fatal(err)
	}
}
