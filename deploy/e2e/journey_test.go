//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
)

const exitNotFound = 3

// readmeJourney applies the first sample as the README describes, checks access, and edits it.
func readmeJourney(t *testing.T, m *machine) {
	t.Helper()
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

	dropTuplesOf(t, stores, "user:beth")
	eventually(t, soon, "the edit has followed", func(ctx context.Context) error {
		return answers(ctx, m, "user:beth viewer document:roadmap", false)
	})
	check(t, m, "user:anne editor document:roadmap", true)
}

// traceIsComplete checks the trace of an object.
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
