package checker

import (
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/history"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// allowedBy returns the indices of the questions that the objects allow by the history's reading.
func allowedBy(s *ObjectSnapshot) map[int]bool {
	timeline := history.Timeline{}
	for gvr, typ := range accessKinds() {
		for _, o := range s.byKind[gvr] {
			timeline.AddState(1, historyKey(typ, o.GetNamespace()+"/"+o.GetName()), declaredObject(typ, o))
		}
	}
	allowed := map[int]bool{}
	for _, i := range timeline.NewVerifier(historyQuestions(allQuestions())).AllowedNow() {
		allowed[i] = true
	}
	return allowed
}

// The history reads objects directly, the check of a system at rest by the tuples that follow from them.
func TestHistoryEqualsTuples(t *testing.T) {
	w := workload.New(rand.New(rand.NewPCG(5, 5)))
	now := map[schema.GroupVersionResource]map[string]unstructured.Unstructured{}
	take := func(o workload.Operation) {
		if now[o.Resource] == nil {
			now[o.Resource] = map[string]unstructured.Unstructured{}
		}
		if now[o.Resource][o.Key()] = identified(*o.Object); o.Verb == workload.Delete {
			delete(now[o.Resource], o.Key())
		}
	}
	for _, o := range workload.InitialOperations() {
		take(o)
	}
	yes := 0
	for range 150 {
		take(w.NextOperation())
		s := &ObjectSnapshot{byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
		for gvr, objects := range now {
			for _, o := range objects {
				s.byKind[gvr] = append(s.byKind[gvr], o)
			}
		}
		a, allowed := newDeclaredAccess(s), allowedBy(s)
		yes += len(allowed)
		for i, q := range allQuestions() {
			if allowed[i] != a.isAllowed(q) {
				t.Fatalf("%s: the history says %t, the tuples say %t", q, allowed[i], a.isAllowed(q))
			}
		}
	}
	if yes < 500 {
		t.Errorf("got %d answers of yes, which is too few to show anything", yes)
	}
}
