package report

import (
	"maps"
	"slices"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
)

// WriteInferenceTree draws which role directly implies which. It draws the children of a role only once, so a cycle ends.
func (p Printer) WriteInferenceTree(m *inferencev1.ListInferencesResponse) {
	byNamespace := map[string]inferenceTree{}
	for _, in := range m.GetInferences() {
		if byNamespace[in.GetNamespace()] == nil {
			byNamespace[in.GetNamespace()] = inferenceTree{}
		}
		byNamespace[in.GetNamespace()][roleName(in.GetParent())] = in
	}
	if len(byNamespace) == 0 {
		p.writeLinef("No role implies another.")
		return
	}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		p.writeLinef("%s", namespace)
		t, drawn := byNamespace[namespace], map[string]bool{}
		for _, root := range t.rootRoles() {
			p.drawBranch(t, drawn, treeBranch{name: root, stem: "  "})
		}
	}
}

// inferenceTree holds the inferences of a namespace by the name of the parent role.
type inferenceTree map[string]*inferencev1.Inference

// rootRoles returns the roles that no role implies, then one role of each cycle that no root reaches.
func (t inferenceTree) rootRoles() []string {
	implied, reached := map[string]bool{}, map[string]bool{}
	for _, in := range t {
		for _, child := range in.GetDirect() {
			implied[roleName(child)] = true
		}
	}
	var roots []string
	reach := func(name string) {
		roots, reached[name] = append(roots, name), true
		for _, child := range t[name].GetChildRoles() {
			reached[roleName(child)] = true
		}
	}
	for _, first := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(t)) {
			if first && !implied[name] || !first && !reached[name] {
				reach(name)
			}
		}
	}
	return roots
}

// treeBranch is a role at one place of the drawing.
type treeBranch struct {
	name, stem, joint string
}

func (p Printer) drawBranch(t inferenceTree, drawn map[string]bool, w treeBranch) {
	children := t[w.name].GetDirect()
	again := drawn[w.name] && len(children) > 0
	drawn[w.name] = true
	note := ""
	if again {
		note = " (above)"
	} else if t[w.name].GetTruncated() {
		note = " (not all that it implies)"
	}
	p.writeLinef("%s%s%s%s", w.stem, w.joint, w.name, note)
	if again {
		return
	}
	stem := w.stem
	switch w.joint {
	case branch:
		stem += branchStem
	case lastBranch:
		stem += blankStem
	}
	for i, child := range children {
		joint, _ := branchTexts(i, len(children))
		p.drawBranch(t, drawn, treeBranch{roleName(child), stem, joint})
	}
}
