//go:build integration

package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/webhook"
)

// TestOpenFGADecidesAndOutageDoesNotAllow lets OpenFGA decide. A yes of OpenFGA counts only if a binding gives it,
// too.
func TestOpenFGADecidesAndOutageDoesNotAllow(t *testing.T) {
	address, set := authorizerOf(t)
	b := &bed{Env: testenv.NewEnv(t)}
	b.set = func(cfg *webhook.Config) {
		set(cfg)
		cfg.Decide, cfg.Cached, cfg.OpenFGA = "openfga", 0, b.OpenFGA.Config()
	}
	b.serve()
	b.StartReflector()
	b.protect()
	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	b.create(kinds.Organizations(), "acme", map[string]any{"type": "Standard"})
	web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	b.nobodyCanTell("no Store")

	client := b.OpenFGA.Client(t)
	storeID, modelID := b.iamStore(client)
	b.nobodyCanTell("the store is not this cluster's")
	b.Patch(kinds.Stores(), "iam", `{"spec":{"adoption":"Always"}}`)
	b.mayGet(false, after(kinds.Projects(), "web"))

	given, by := letsIn("alice", "web")
	write := func(add, remove []*openfgav1.TupleKey) {
		t.Helper()
		if err := client.Write(t.Context(), storeID, modelID, add, remove); err != nil {
			t.Fatal(err)
		}
	}
	write(given, nil)
	if code, answer := subjectRequest(t, address); code != http.StatusServiceUnavailable {
		t.Errorf("without a binding: got %d %s", code, answer)
	}
	b.bind("on-web", "Project", "web", web, subjectFromMessage("User", "alice", alice))
	b.mayGet(true, after(kinds.PolicyBindings(), "on-web"))
	for range 3 {
		write(nil, []*openfgav1.TupleKey{by})
		b.mayGet(false, nil)
		write(given, nil)
		b.mayGet(true, nil)
	}
	b.OpenFGA.Stop()
	b.nobodyCanTell("OpenFGA is down")
	b.OpenFGA.Start(t)
	b.mayGet(true, nil)
}

// letsIn returns the tuples by which a user may get a project, and the one of them that names the user.
func letsIn(user, project string) (given []*openfgav1.TupleKey, subject *openfgav1.TupleKey) {
	role := &iamv1alpha1.Role{ObjectMeta: metav1.ObjectMeta{UID: "r"}}
	target := iam.OpenFGAObject(projects+"/Project", "", project)
	grant := iam.GrantObject(role, target)
	tuple := func(user, relation, object string) *openfgav1.TupleKey {
		return &openfgav1.TupleKey{User: user, Relation: relation, Object: object}
	}
	subject = tuple(iam.UserSubject(user), "u", grant)
	return []*openfgav1.TupleKey{
		tuple(iam.UserType+":*", iam.RelationOf(projects+"/projects.get"), iam.RoleObject(role)),
		tuple(iam.RoleObject(role), "r", grant), tuple(grant, "b", target), subject,
	}, subject
}

func TestOpenFGAAnswersAreCachedUntilChange(t *testing.T) {
	b := &bed{Env: testenv.NewEnv(t)}
	b.set = func(cfg *webhook.Config) { cfg.Decide, cfg.OpenFGA = "openfga", b.OpenFGA.Config() }
	b.serve()
	b.StartReflector()
	b.protect()
	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	b.create(kinds.Organizations(), "acme", map[string]any{"type": "Standard"})
	web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	client := b.OpenFGA.Client(t)
	storeID, modelID := b.iamStore(client)
	b.Patch(kinds.Stores(), "iam", `{"spec":{"adoption":"Always"}}`)
	given, by := letsIn("alice", "web")
	write := func(add, remove []*openfgav1.TupleKey) {
		t.Helper()
		if err := client.Write(t.Context(), storeID, modelID, add, remove); err != nil {
			t.Fatal(err)
		}
	}
	write(given, nil)
	b.bind("on-web", "Project", "web", web, subjectFromMessage("User", "alice", alice))
	b.mayGet(true, after(kinds.PolicyBindings(), "on-web"))
	hits := b.running.MetricValue(t, "authz_cache_hits_total")
	const often = 20
	for range often {
		b.mayGet(true, nil)
	}
	if n := b.running.MetricValue(t, "authz_cache_hits_total") - hits; n != often {
		t.Errorf("got %v cache hits, want %d", n, often)
	}
	b.remove(kinds.PolicyBindings(), "on-web")
	if answer, err := b.get("alice", "web", after(kinds.PolicyBindings(), "on-web")); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("while OpenFGA lags behind: got %v, %v", answer, err)
	}
	write(nil, []*openfgav1.TupleKey{by})
	b.mayGet(false, after(kinds.PolicyBindings(), "on-web"))
}

// TestFlappingOpenFGADoesNotCauseWrongAnswer delays, fails and restarts OpenFGA under load. Each answer, kept
// or new, is as declared, and a revocation counts once OpenFGA has it.
func TestFlappingOpenFGADoesNotCauseWrongAnswer(t *testing.T) {
	for name, cached := range map[string]int{"asked each time": 0, "kept": 64} {
		t.Run(name, func(t *testing.T) {
			address, set := authorizerOf(t)
			b := &bed{Env: testenv.NewEnv(t)}
			b.set = func(cfg *webhook.Config) {
				set(cfg)
				cfg.Decide, cfg.Cached, cfg.OpenFGA = "openfga", cached, b.OpenFGA.Config()
			}
			b.serve()
			b.StartReflector()
			b.protect()
			alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
			web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
			client := b.OpenFGA.Client(t)
			storeID, modelID := b.iamStore(client)
			b.Patch(kinds.Stores(), "iam", `{"spec":{"adoption":"Always"}}`)
			given, by := letsIn("alice", "web")
			if err := client.Write(t.Context(), storeID, modelID, given, nil); err != nil {
				t.Fatal(err)
			}
			b.bind("on-web", "Project", "web", web, subjectFromMessage("User", "alice", alice))
			b.mayGet(true, after(kinds.PolicyBindings(), "on-web"))

			askers := []*asker{{address: address, user: "alice", always: `"allowed":true`}, {address: address, user: "mallory", always: "missing permission"}}
			ctx, stop := context.WithCancel(t.Context())
			var asking sync.WaitGroup
			defer asking.Wait()
			defer stop()
			for _, a := range askers {
				asking.Go(func() { a.run(ctx, t) })
			}
			answered := func() {
				t.Helper()
				for _, a := range askers {
					a.more(t)
				}
			}
			var calls atomic.Int64
			b.OpenFGA.FailBefore(func(ctx context.Context, _ string) error {
				switch calls.Add(1) % 4 {
				case 0:
					<-ctx.Done() // Longer than every client waits.
					return ctx.Err()
				case 1:
					return status.Error(codes.Internal, "out of order")
				case 2:
					<-time.After(100 * time.Millisecond)
				}
				return nil
			})
			answered()
			b.OpenFGA.FailBefore(nil)
			for range 3 {
				b.OpenFGA.Stop()
				b.OpenFGA.Start(t)
				answered()
			}
			stop()
			asking.Wait()
			for _, a := range askers {
				t.Logf("%s: %d answers, %d failures", a.user, a.answers.Load(), a.failures.Load())
			}
			b.remove(kinds.PolicyBindings(), "on-web")
			if err := client.Write(t.Context(), storeID, modelID, nil, []*openfgav1.TupleKey{by}); err != nil {
				t.Fatal(err)
			}
			b.mayGet(false, after(kinds.PolicyBindings(), "on-web"))
		})
	}
}

// TestDecisionVerifierComparesAnswers lets the index decide while answers are compared with OpenFGA.
func TestDecisionVerifierComparesAnswers(t *testing.T) {
	b := &bed{Env: testenv.NewEnv(t)}
	b.set = func(cfg *webhook.Config) { cfg.Verify, cfg.OpenFGA = 1, b.OpenFGA.Config() }
	b.serve()
	b.StartReflector()
	b.protect()
	b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	b.iamStore(b.OpenFGA.Client(t))
	b.mayGet(false, after(kinds.IAMUsers(), "alice"))
	b.counted("unknown") // The store does not belong to this cluster.
	b.Patch(kinds.Stores(), "iam", `{"spec":{"adoption":"Always"}}`)
	b.counted("same")
	b.OpenFGA.Stop()
	b.mayGet(false, nil)
}

// nobodyCanTell expects that questions get neither yes nor no.
func (b *bed) nobodyCanTell(why string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		answer, err := b.get("alice", "web", after(kinds.Projects(), "web"))
		if err == nil {
			b.T.Fatalf("%s: got %v, want an error", why, answer)
		}
		if connect.CodeOf(err) == connect.CodeUnimplemented {
			return err // The server does not serve the API yet.
		}
		if connect.CodeOf(err) != connect.CodeUnavailable {
			b.T.Fatalf("%s: %v", why, err)
		}
		if strings.Contains(err.Error(), "has not read everything") { // The informer is incomplete.
			return err
		}
		return nil
	})
}

// counted sends questions until a comparison has that outcome.
func (b *bed) counted(outcome string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		if _, err := b.get("alice", "web", nil); err != nil {
			return err
		}
		answer, err := http.Get(b.running.URL + "/metrics")
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		page, err := io.ReadAll(answer.Body)
		if err == nil && !strings.Contains(string(page), fmt.Sprintf("entail_verified_decisions_total{outcome=%q}", outcome)) {
			err = fmt.Errorf("nothing is %s", outcome)
		}
		return err
	})
}

// iamStore makes the Store of IAM with a model of the registered kinds, as store-sync does.
func (b *bed) iamStore(client *fga.Client) (storeID, modelID string) {
	b.T.Helper()
	storeID, err := client.CreateStore(b.T.Context(), "iam")
	if err == nil {
		modelID, err = client.WriteModel(b.T.Context(), storeID, &openfgav1.AuthorizationModel{
			SchemaVersion: typesystem.SchemaVersion1_2, TypeDefinitions: iam.NewRegistry(b.registered()).TypeDefinitions(),
		})
	}
	if err != nil {
		b.T.Fatal(err)
	}
	b.create(kinds.Stores(), "iam", map[string]any{"coreModule": "model\n  schema 1.2\n"})
	b.ApplyStatus("store-sync", kinds.Stores(), "iam", map[string]any{"storeId": storeID, "authorizationModelId": modelID})
	return storeID, modelID
}

// registered returns the existing ProtectedResources.
func (b *bed) registered() (resources []*iamv1alpha1.ProtectedResource) {
	b.T.Helper()
	for _, u := range b.List(kinds.ProtectedResources()).Items {
		p := &iamv1alpha1.ProtectedResource{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
			b.T.Fatal(err)
		}
		resources = append(resources, p)
	}
	return resources
}
