//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
)

// soon bounds what should take well under a second: two cores may be busy.
const soon = 60 * time.Second

const exitNotFound = 3

func resource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "core.platform-mesh.io", Version: "v1alpha1", Resource: name}
}

// TestTheJourneyOfTheReadme is one story: each part begins where the one before ends.
func TestTheJourneyOfTheReadme(t *testing.T) {
	state := t.TempDir()
	m := up(t, state)
	objects := m.objects(t)
	stores, models := objects.Resource(resource("stores")), objects.Resource(resource("authorizationmodels"))

	begun := time.Now()
	applySamples(t, m, "store.yaml")
	eventually(t, soon, "both objects are ready", func(ctx context.Context) error {
		return errors.Join(ready(ctx, stores, "demo"), ready(ctx, models, "demo-documents"))
	})
	t.Logf("from apply to ready: %s", time.Since(begun).Round(time.Millisecond))
	check(t, m, "user:beth viewer document:roadmap", true)
	check(t, m, "user:anne editor document:roadmap", true)
	check(t, m, "user:carl viewer document:press-kit", true)
	check(t, m, "user:carl viewer document:roadmap", false)
	traceIsComplete(t, m, "store/demo")
	traceIsComplete(t, m, "authorizationmodel/demo-documents")
	statusKnowsEveryService(t, m)

	eventually(t, soon, "a text that does not parse is refused", func(ctx context.Context) error {
		_, err := models.Patch(ctx, "demo-documents", types.MergePatchType, []byte(`{"spec":{"model":"module demo\ntyp document\n"}}`),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "line 2:1: syntax error") {
			return fmt.Errorf("it says %w", cmp.Or(err, errors.New("nothing")))
		}
		return nil
	})

	storeID := field(t, stores, "status", "storeId")
	dropTuplesOf(t, stores, "user:beth")
	eventually(t, soon, "the edit has followed", func(ctx context.Context) error {
		return answers(ctx, m, "user:beth viewer document:roadmap", false)
	})
	check(t, m, "user:anne editor document:roadmap", true)

	m.stop(t, syscall.SIGTERM)
	m = up(t, state)
	objects = m.objects(t)
	stores, models = objects.Resource(resource("stores")), objects.Resource(resource("authorizationmodels"))
	if got := field(t, stores, "status", "storeId"); got != storeID || got == "" {
		t.Fatalf("the store was %q and is %q after a restart", storeID, got)
	}
	check(t, m, "user:anne editor document:roadmap", true)
	check(t, m, "user:beth viewer document:roadmap", false)

	deletionIsInOrder(t, m, stores, models)
	storeIsGone(t, m, storeID)
	m.stop(t, os.Interrupt)
}

func TestSamplesAreCreatedOnceAndNeverOverwritten(t *testing.T) {
	state := t.TempDir()
	m := up(t, state, "--samples", "deploy/samples")
	stores := m.objects(t).Resource(resource("stores"))
	eventually(t, soon, "the sample is ready", func(ctx context.Context) error { return ready(ctx, stores, "demo") })
	dropTuplesOf(t, stores, "user:beth")
	edited := field(t, stores, "metadata", "generation")
	m.stop(t, syscall.SIGTERM)
	m = up(t, state, "--samples", "deploy/samples")
	if got := field(t, m.objects(t).Resource(resource("stores")), "metadata", "generation"); got != edited {
		t.Errorf("generation %s was edited, and is %s after a restart", edited, got)
	}
	m.stop(t, syscall.SIGTERM)
}

// deletionIsInOrder deletes the store first: it waits for the model that refers to it.
func deletionIsInOrder(t *testing.T, m *machine, stores, models dynamic.ResourceInterface) {
	t.Helper()
	if err := stores.Delete(t.Context(), "demo", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "the store tells what its deletion waits for", func(ctx context.Context) error {
		deleting, err := condition(ctx, stores, "demo", "Deleting")
		if err == nil && !strings.Contains(deleting, "demo-documents") {
			err = fmt.Errorf("condition Deleting is %s", deleting)
		}
		return err
	})
	check(t, m, "user:anne editor document:roadmap", true)
	if err := models.Delete(t.Context(), "demo-documents", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "both objects are gone", func(ctx context.Context) error {
		return errors.Join(gone(ctx, models, "demo-documents"), gone(ctx, stores, "demo"))
	})
	eventually(t, soon, "the trace tells of the deletion", func(context.Context) error {
		if trace, _ := m.ask(t, "trace", "store/demo"); !bytes.Contains(trace, []byte(", deleted")) {
			return fmt.Errorf("it is %s", trace)
		}
		return nil
	})
}

// traceIsComplete asks the command line for an object's way.
func traceIsComplete(t *testing.T, m *machine, object string) {
	t.Helper()
	out, code := m.ask(t, "trace", object, "--wait", "20s", "-o", "json")
	var trace syncv1.TraceObjectResponse
	if err := protojson.Unmarshal(out, &trace); code != 0 || err != nil {
		t.Fatalf("trace %s: exit code %d, %v\n%s", object, code, err, out)
	}
	observed, published := trace.GetObservedAt().AsTime(), trace.GetPublishedAt().AsTime()
	if published.Before(observed) {
		t.Errorf("trace %s: published %s before observed %s", object, published, observed)
	}
	services := map[string]bool{}
	for _, step := range trace.GetSteps() {
		result := step.GetResult()
		services[result.GetService()] = step.GetCurrent() && result.GetOutcome() == eventv1.Outcome_OUTCOME_APPLIED
		if result.GetFinishedAt().AsTime().Before(result.GetObservedAt().AsTime()) {
			t.Errorf("trace %s: %s was done before it was observed", object, result.GetService())
		}
	}
	if len(services) != 2 || !services["store-sync"] || !services["tuple-sync"] {
		t.Errorf("trace %s: not applied by both services: %s", object, out)
	}
	table, _ := m.ask(t, "trace", object)
	t.Logf("entail trace %s\n%s", object, table)
	for _, want := range []string{"observed", "published", "applied by store-sync", "applied by tuple-sync"} {
		if !bytes.Contains(table, []byte(want)) {
			t.Errorf("trace %s lacks %q", object, want)
		}
	}
	if _, code := m.ask(t, "trace", object+"-of-nobody"); code != exitNotFound {
		t.Errorf("trace of an unknown object: exit code %d", code)
	}
}

func statusKnowsEveryService(t *testing.T, m *machine) {
	t.Helper()
	out, code := m.ask(t, "status", "-o", "json")
	var status syncv1.GetStatusResponse
	if err := protojson.Unmarshal(out, &status); code != 0 || err != nil {
		t.Fatalf("status: exit code %d, %v\n%s", code, err, out)
	}
	var services []string
	for _, s := range status.GetServices() {
		services = append(services, s.GetName())
	}
	if !slices.Equal(services, []string{"store-sync", "tuple-sync", "implied-role", "opensearch-sync"}) || len(status.GetSnapshots()) < 3 || status.GetDeadLetters() != 0 {
		t.Errorf("status is %s", out)
	}
}

// storeIsGone asks OpenFGA itself.
func storeIsGone(t *testing.T, m *machine, id string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.OpenFGAHTTP+"/stores", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || bytes.Contains(body, []byte(id)) {
		t.Errorf("OpenFGA's stores after the deletion: %s, error %v", body, err)
	}
}

// check asks a question such as "user:beth viewer document:roadmap".
func check(t *testing.T, m *machine, question string, want bool) {
	t.Helper()
	if err := answers(t.Context(), m, question, want); err != nil {
		t.Error(err)
	}
}

func answers(ctx context.Context, m *machine, question string, want bool) error {
	words := strings.Fields(question)
	got, err := m.tuples().Check(ctx, &tuplev1.CheckRequest{
		Store: "demo", Key: &tuplev1.TupleKey{User: words[0], Relation: words[1], Object: words[2]},
	})
	if err != nil {
		return err
	}
	if got.GetAllowed() != want {
		return fmt.Errorf("%s: allowed is %t", question, got.GetAllowed())
	}
	return nil
}

// applySamples applies the samples, as kubectl apply --server-side does, and returns for each who tells whether it is ready.
func applySamples(t *testing.T, m *machine, file string) (readiness []func(context.Context) error) {
	t.Helper()
	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(m.config(t)))
	if err != nil {
		t.Fatal(err)
	}
	mapper, objects := restmapper.NewDiscoveryRESTMapper(groups), m.objects(t)
	manifest, err := os.ReadFile(filepath.Join(root, "deploy", "samples", file))
	if err != nil {
		t.Fatal(err)
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), len(manifest))
	for {
		var object unstructured.Unstructured
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return readiness
		} else if err != nil {
			t.Fatal(err)
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			t.Fatal(err)
		}
		api := objects.Resource(mapping.Resource).Namespace(object.GetNamespace())
		if _, err := api.Apply(t.Context(), object.GetName(), &object, metav1.ApplyOptions{FieldManager: "kubectl"}); err != nil {
			t.Fatal(err)
		}
		readiness = append(readiness, func(ctx context.Context) error { return ready(ctx, api, object.GetName()) })
	}
}

// dropTuplesOf takes a user's tuples out of the store's spec.
func dropTuplesOf(t *testing.T, stores dynamic.ResourceInterface, user string) {
	t.Helper()
	store, err := stores.Get(t.Context(), "demo", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tuples, _, err := unstructured.NestedSlice(store.Object, "spec", "tuples")
	if err != nil {
		t.Fatal(err)
	}
	kept := []any{}
	for _, tuple := range tuples {
		if tuple, ok := tuple.(map[string]any); ok && tuple["user"] != user {
			kept = append(kept, tuple)
		}
	}
	if len(kept) == len(tuples) {
		t.Fatalf("%s has no tuple in the store", user)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"tuples": kept}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stores.Patch(t.Context(), "demo", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func ready(ctx context.Context, objects dynamic.ResourceInterface, name string) error {
	got, err := condition(ctx, objects, name, "Ready")
	if err == nil && !strings.HasPrefix(got, "True") {
		err = fmt.Errorf("%s: condition Ready is %s", name, got)
	}
	return err
}

// condition is its status, reason and message, when it speaks of the present generation.
func condition(ctx context.Context, objects dynamic.ResourceInterface, name, kind string) (string, error) {
	object, err := objects.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind && c["observedGeneration"] == object.GetGeneration() {
			return fmt.Sprintf("%v %v %v", c["status"], c["reason"], c["message"]), err
		}
	}
	return "missing", err
}

func gone(ctx context.Context, objects dynamic.ResourceInterface, name string) error {
	object, err := objects.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s is there, with finalizers %v", name, object.GetFinalizers())
	}
	return err
}

// field is one of the store's, as text.
func field(t *testing.T, stores dynamic.ResourceInterface, path ...string) string {
	t.Helper()
	object, err := stores.Get(t.Context(), "demo", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(value)
}
