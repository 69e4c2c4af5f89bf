package plan_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/store-sync/policymodule/plan"
)

// documentWithManyTypes declares many types.
func documentWithManyTypes(types int) string {
	var text strings.Builder
	text.WriteString("resourceTypes:\n")
	for i := range types {
		fmt.Fprintf(&text, "  - {name: greedy%d, idPrefix: greedy%d}\n", i, i)
	}
	return text.String()
}

func TestDecideDocumentsRefusesNewestOverBudget(t *testing.T) {
	t.Parallel()
	w := newSimulatedStore(t)
	w.room = &plan.ModelBudget{Types: 10, Bytes: 100_000}
	w.say("a/first", documentWithManyTypes(2))
	w.settle()
	w.say("b/greedy", strings.ReplaceAll(documentWithManyTypes(10), "greedy", "other"))
	w.say("a/first", documentWithManyTypes(1)) // It removes a type.
	w.say("c/late", "resourceTypes: [{name: late, idPrefix: late}]\n")
	w.expectFindings(w.settle(), map[string]string{"b/greedy": "E-OPENFGA-TYPES the documents of the Store have "})
	w.expectLive(map[string]string{"a/first": "greedy0", "c/late": "late"})
}

func TestDecideDocumentsKeepsLiveTextsWithoutRoom(t *testing.T) {
	t.Parallel()
	w := newSimulatedStore(t)
	w.say("a/first", documentWithManyTypes(4))
	w.settle()
	w.room = &plan.ModelBudget{Types: 1, Bytes: -1}
	w.say("a/first", documentWithManyTypes(3))
	w.say("b/second", "resourceTypes: [{name: second, idPrefix: second}]\n")
	w.expectFindings(w.settle(), map[string]string{"b/second": "E-OPENFGA-TYPES"})
	w.expectLive(map[string]string{"a/first": "greedy0 greedy1 greedy2"})
}

// documentWithManyBindings binds as many actions as it can to as many types.
func documentWithManyBindings() string {
	var text strings.Builder
	text.WriteString(documentWithManyTypes(700) + "unions:\n  - name: all\n    resourceTypes:\n")
	for i := range 700 {
		fmt.Fprintf(&text, "      - {name: greedy%d}\n", i)
	}
	text.WriteString("actions:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "  - {name: do%d}\n", i)
	}
	text.WriteString("actionBindings:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "  - {actionName: do%d, typeName: all, conditions: [{roleBinding: {}}]}\n", i)
	}
	return text.String()
}

func TestDecideDocumentsRefusesHugeModelEarly(t *testing.T) {
	for name, room := range map[string]*plan.ModelBudget{"where the room is known": {Types: 100, Bytes: 256 << 10}, "where it is not": nil} {
		w := newSimulatedStore(t)
		w.room = room
		w.say("a/vast", documentWithManyBindings())
		w.say("b/small", "resourceTypes: [{name: small, idPrefix: small}]\n")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		todo := w.settle()
		runtime.ReadMemStats(&after)
		w.expectFindings(todo, map[string]string{"a/vast": "E-OPENFGA-SIZE the documents of the Store bind 700000 actions"})
		w.expectLive(map[string]string{"b/small": "small"})
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 50 {
			t.Errorf("%s: %d MiB were used", name, used)
		}
	}
}
