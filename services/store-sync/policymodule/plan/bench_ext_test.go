package plan_test

import (
	"fmt"
	"testing"

	"github.com/entail-dev/entail/services/store-sync/policymodule/plan"
)

// chainOfServices returns a world in which each of n services registers a type that refers to the previous one.
func chainOfServices(b *testing.B, n int) *simulatedStore {
	b.Helper()
	w := newSimulatedStore(b)
	for i := range n {
		w.say(fmt.Sprintf("team/s%03d", i), serviceText(i))
	}
	w.settle()
	return w
}

func serviceText(i int) string {
	return fmt.Sprintf(`resourceTypes: [{name: t%d, idPrefix: pre%d, relationships: [{relation: up, targetTypes: [{name: t%d}]}]}]
actions: [{name: get_%s}]
actionBindings: [{actionName: get_%[4]s, typeName: t%[1]d, conditions: [{roleBinding: {}}]}]
`, i, i, max(i-1, 0), letters(i))
}

// letters returns a number in the letters that an action may contain.
func letters(i int) string {
	return string([]byte{'a' + byte(i/26/26%26), 'a' + byte(i/26%26), 'a' + byte(i%26)})
}

func BenchmarkDecideDocuments100(b *testing.B) {
	for name, edit := range map[string]func(w *simulatedStore){
		"in step": func(*simulatedStore) {},
		"one is edited": func(w *simulatedStore) {
			w.say("team/s050", serviceText(50)+"unions: [{name: u, resourceTypes: [{name: t1}, {name: t2}]}]\n")
		},
		"one is refused":               func(w *simulatedStore) { w.say("team/new", serviceText(50)) },
		"one that all need is deleted": func(w *simulatedStore) { delete(w.documents, "team/s000") },
		"20 are refused": func(w *simulatedStore) {
			for i := range 20 {
				w.say(fmt.Sprintf("team/new%d", i), serviceText(i))
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			w := chainOfServices(b, 100)
			edit(w)
			in := w.input()
			for b.Loop() {
				plan.DecideDocuments(in)
			}
		})
	}
}
