package report_test

import (
	"testing"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func TestWriteModelProvenance(t *testing.T) {
	m := &storev1.GetModelResponse{
		Dsl: "model\n  schema 1.2\n\ntype a\n",
		Definitions: []*storev1.Definition{
			{Type: "a", Module: "core", Source: "core"},
			{Type: "a", Relation: "b", Module: "m", Source: "authorizationmodel/x"},
			{Condition: "c", Module: "m"},
		},
	}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteModel(m) }), "model\n  schema 1.2\n\ntype a\n")
	expectEqual(t, write(t, func(p report.Printer) { p.WriteModelProvenance(m) }), `
DEFINITION    MODULE   SOURCE
a             core     core
a#b           m        authorizationmodel/x
condition c   m        unknown: the live model differs from the declared one
`)
}

func TestWriteModelChangesPrintsTable(t *testing.T) {
	changes := []*storev1.ModelChange{
		{Kind: storev1.ModelChange_KIND_ADDED, Definition: &storev1.Definition{Type: "a"}},
		{
			Kind: storev1.ModelChange_KIND_CHANGED, Definition: &storev1.Definition{Type: "a", Relation: "b"},
			Before: "[user]", After: "[robot]", Gained: []string{"robot"}, Lost: []string{"user"},
		},
	}
	expectEqual(t, write(t, func(p report.Printer) {
		p.WriteModelPreview(&storev1.PreviewModelResponse{
			Accepted: true, Changes: changes,
			Modules: []*storev1.Module{{Source: "authorizationmodel/x", State: "Rejected", Message: "it conflicts"}, {Source: "core", State: "Merged"}},
		})
	}), `
authorizationmodel/x would be rejected: it conflicts
DEFINITION   CHANGE    NOW ALSO   NO LONGER   AFTER
a            added                            
a#b          changed   robot      user        [robot]
`)
	expectEqual(t, write(t, func(p report.Printer) { p.WriteModelChanges(nil) }), "The models mean the same.\n")
	expectEqual(t, write(t, func(p report.Printer) {
		p.WriteModelPreview(&storev1.PreviewModelResponse{Message: "line 3:1: no"})
	}), "Rejected: line 3:1: no\n")
	removed := &storev1.ModelChange{
		Kind: storev1.ModelChange_KIND_REMOVED, Definition: &storev1.Definition{Type: "a", Relation: "b", Source: "authorizationmodel/x"},
	}
	expectEqual(t, write(t, func(p report.Printer) {
		p.WriteModelPreview(&storev1.PreviewModelResponse{
			Message: "line 3:1: no", Changes: []*storev1.ModelChange{removed}, LostTupleCount: 2,
			LostTuples: []*storev1.LostTuple{{Object: "a:1", Relation: "b", User: "user:ann", Owner: "authorizationmodel/x"}},
		})
	}), `
Rejected: line 3:1: no
Removals act nevertheless:
authorizationmodel/x would lose a#b
Tuples that would leave OpenFGA: 2
  a:1#b@user:ann of authorizationmodel/x
  and 1 more
DEFINITION   CHANGE    NOW ALSO   NO LONGER   AFTER
a#b          removed                          
`)
}
