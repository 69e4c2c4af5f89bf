//go:build integration

package proof

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
)

// accounts is a core module for generated modules to extend. It has three types.
const accounts = `module core

type user

type role
  relations
    define assignee: [user, user:*]

type core_platform-mesh_io_account
  relations
    define parent: [core_platform-mesh_io_account]
    define owner: [role#assignee] or owner from parent
    define member: [role#assignee] or owner or member from parent
`

// manyModels is a Store with modules like those that are generated for APIs.
type manyModels struct {
	*inProcessServices
	store string
	texts []string
}

func startManyModels(b *testing.B, n int) *manyModels {
	b.Helper()
	s := &manyModels{inProcessServices: startInProcessServices(b, topology.Watcher, topology.StoreSync, topology.TupleSync)}
	s.kube.Apply(b, kinds.Stores(), "bench", corev1alpha1.StoreSpec{CoreModule: accounts, Discovery: corev1alpha1.DiscoveryNone})
	for i := range n {
		s.texts = append(s.texts, text(b, i))
		s.apply(b, i, s.texts[i])
	}
	s.awaitModules(b)
	return s
}

// text returns the i-th module. A model may have at most 100 types, so the last modules only extend one.
func text(b *testing.B, i int) string {
	b.Helper()
	name := fmt.Sprintf("part%02d", i)
	if i >= 97 {
		return fmt.Sprintf("module %[1]s\n\nextend type core_platform-mesh_io_account\n  relations\n    define use_%[1]s: member\n", name)
	}
	text, err := plan.ModuleTemplate{}.RenderModule(plan.APIResource{Group: "example.com", Plural: name + "s", Singular: name})
	if err != nil {
		b.Fatal(err)
	}
	return text
}

func (s *manyModels) apply(b *testing.B, i int, text string) {
	b.Helper()
	s.kube.Apply(b, kinds.AuthorizationModels(), fmt.Sprintf("part%02d", i),
		corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: "bench"}, Model: text})
}

// awaitModules waits until all modules and the Store are Ready.
func (s *manyModels) awaitModules(b *testing.B) {
	b.Helper()
	testenv.Eventually(b, time.Minute, func() error {
		modules, err := list[corev1alpha1.AuthorizationModel](b.Context(), s.objects, kinds.AuthorizationModels())
		for name, m := range modules {
			if !ready(m.Status.Conditions, m.Generation) {
				return fmt.Errorf("%s is not Ready: %+v", name, m.Status.Conditions)
			}
		}
		if err != nil || len(modules) < len(s.texts) {
			return fmt.Errorf("there are %d modules (%w)", len(modules), err)
		}
		stores, err := list[corev1alpha1.Store](b.Context(), s.objects, kinds.Stores())
		if err == nil && !ready(stores["bench"].Status.Conditions, stores["bench"].Generation) {
			err = errors.New("the Store is not Ready")
		}
		s.store = stores["bench"].Status.StoreID
		return err
	})
}

// One module of a store changes. The store has 100 modules, including the core module. The time is from the answer to
// the user's request to the new model in OpenFGA.
func BenchmarkChangeToModel(b *testing.B) {
	s := startManyModels(b, 99)
	var took []time.Duration
	for round := 0; b.Loop(); round++ {
		relation := fmt.Sprintf("round_%d", round)
		s.apply(b, 50, s.texts[50]+"    define "+relation+": owner\n")
		took = append(took, durationUntil(b, func() (bool, error) {
			m, err := s.openFGA.ReadLatestModel(b.Context(), s.store)
			for _, t := range m.GetTypeDefinitions() {
				if t.GetType() == "example_com_part50" && t.GetRelations()[relation] != nil {
					return true, err
				}
			}
			return false, err
		}))
		b.StopTimer()
		s.awaitModules(b)
		b.StartTimer()
	}
	report(b, took)
}

// One of sixty modules becomes invalid. The time is from the answer to the user's request to the reason in the status
// of its object.
func BenchmarkChangeToRejection(b *testing.B) {
	s := startManyModels(b, 60)
	var took []time.Duration
	for b.Loop() {
		s.apply(b, 30, "module broken\n\ntype broken\n  relations\n    define reader [user]\n")
		took = append(took, durationUntil(b, func() (bool, error) {
			u, err := s.objects.Resource(kinds.AuthorizationModels().GroupVersionResource()).Get(b.Context(), "part30", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			var m corev1alpha1.AuthorizationModel
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &m)
			c := meta.FindStatusCondition(m.Status.Conditions, corev1alpha1.Merged)
			return c != nil && c.Reason == corev1alpha1.LastGoodLive && c.ObservedGeneration == m.Generation, err
		}))
		b.StopTimer()
		s.apply(b, 30, s.texts[30])
		s.awaitModules(b)
		b.StartTimer()
	}
	report(b, took)
}

// durationUntil returns the time until is returns true.
func durationUntil(b *testing.B, is func() (bool, error)) time.Duration {
	b.Helper()
	begun := time.Now()
	for {
		done, err := is()
		if err != nil {
			b.Fatal(err)
		}
		if done {
			return time.Since(begun)
		}
		if time.Since(begun) > time.Minute {
			b.Fatal("it does not come")
		}
		<-time.After(2 * time.Millisecond)
	}
}

func report(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
}
