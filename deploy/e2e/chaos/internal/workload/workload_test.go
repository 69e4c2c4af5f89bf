package workload

import (
	"math/rand/v2"
	"testing"
)

func draw(seed uint64, n int) []string {
	w := New(rand.New(rand.NewPCG(seed, 0)))
	all := make([]string, n)
	for i := range all {
		all[i] = w.NextOperation().String()
	}
	return all
}

func TestOperationsAreDeterministic(t *testing.T) {
	first, again, other := draw(1, 500), draw(1, 500), draw(2, 500)
	same := 0
	for i := range first {
		if first[i] != again[i] {
			t.Fatalf("operation %d is %q and %q", i, first[i], again[i])
		}
		if first[i] == other[i] {
			same++
		}
	}
	if same > len(first)/4 {
		t.Errorf("another seed draws %d of %d operations alike", same, len(first))
	}
}

func TestEveryKindIsCreatedChangedAndDeleted(t *testing.T) {
	w := New(rand.New(rand.NewPCG(1, 0)))
	seen, lingering := map[string]map[OperationVerb]int{}, map[string]int{}
	for range 5000 {
		o := w.NextOperation()
		lingering[o.Resource.Resource] += len(o.Object.GetFinalizers())
		if seen[o.Resource.Resource] == nil {
			seen[o.Resource.Resource] = map[OperationVerb]int{}
		}
		seen[o.Resource.Resource][o.Verb]++
	}
	for _, k := range AllKinds() {
		verbs := seen[k.Resource.Resource]
		if k.Weight > 0 && (verbs[Apply] == 0 || !k.Keep && verbs[Delete] == 0) {
			t.Errorf("%s: %v", k.Resource.Resource, verbs)
		}
		if k.Lingers && lingering[k.Resource.Resource] == 0 {
			t.Errorf("no %s ever stays in deletion", k.Resource.Resource)
		}
	}
	if seen["rolebindings"][Replace] == 0 {
		t.Error("no RoleBinding ever changes its role")
	}
	if seen["configmaps"][Replace] == 0 || seen["gears"][Replace] == 0 || seen["organizations"][Replace] == 0 {
		t.Error("no target is ever made anew under its name")
	}
}

func TestOperationsClusterByKind(t *testing.T) {
	w := New(rand.New(rand.NewPCG(1, 0)))
	most, last := map[string]int{}, []string{}
	for range 5000 {
		last = append(last, w.NextOperation().Resource.Resource)
		counts := map[string]int{}
		for _, resource := range last[max(0, len(last)-12):] {
			counts[resource]++
			most[resource] = max(most[resource], counts[resource])
		}
	}
	for _, k := range AllKinds() {
		if resource := k.Resource.Resource; k.Weight > 1 && most[resource] < 8 {
			t.Errorf("of 12 operations at most %d are on %s", most[resource], resource)
		}
	}
}

func TestForceStripsOnlyObjectsWithFinalizers(t *testing.T) {
	w := New(rand.New(rand.NewPCG(1, 0)))
	for range 200 {
		if o := w.NextForcedOperation(); o.Verb != Strip || o.Resource != StoreResource() && o.Resource != AuthorizationModelResource() {
			t.Fatalf("drawn: %s", o)
		}
	}
}
