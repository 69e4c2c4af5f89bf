package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/policy"
)

// Input is what the policy of one Store depends on.
type Input struct {
	Store corev1alpha1.StoreRef
	// Roles is where the Store's model keeps roles, such as "role#assignee"; empty is "role#subject".
	Roles string
	// Defined are the types that modules define which no policy made, and their relations as type#relation.
	Defined map[string]bool
	// Documents are those that are present, in any order; what is live of them does not matter.
	Documents []Document
	// Has are the AuthorizationModels that were made of documents before.
	Has []*corev1alpha1.AuthorizationModel
}

// Steps are what to do.
type Steps struct {
	// Apply are the objects to make or change, with what they must hold and nothing else.
	Apply []corev1alpha1.AuthorizationModel
	// Delete are names.
	Delete []string
	// Verdicts are by the names of documents that are present.
	Verdicts map[string]Verdict
}

// Verdict is what became of a document.
type Verdict struct {
	// Findings are the errors; none if it is valid.
	Findings []iaplv1alpha1.Finding
	// AuthorizationModel is the one that holds its module, if only of an earlier text; empty if nothing of it is live.
	AuthorizationModel string
}

// maxRounds bounds how often what was refused is looked at again.
const maxRounds = 8

// Plan compares what documents say with what is live. It depends on neither's order. What was
// refused is tried again beside what was accepted, so that another pass finds nothing to do.
func Plan(in Input) Steps {
	options, wrong := in.Options()
	s := newSelection(in.known(), options, in.Defined)
	if wrong != nil {
		s.refuseAll(policy.Diagnostics{{
			Code: policy.CodeOption, Severity: policy.Error, Message: wrong.Error(),
			Hint: fmt.Sprintf("annotate Store %s with the type of roles and its relation to who has them, such as %s: role#assignee",
				in.Store.Name, iaplv1alpha1.RolesAnnotation),
		}})
		return in.steps(s, nil)
	}
	p := s.choose()
	for range maxRounds {
		if accepted, left := s.progress(); !accepted || !left {
			break
		}
		s = newSelection(s.accepted(), options, in.Defined)
		p = s.choose()
	}
	return in.steps(s, p)
}

// Options are the language's, with the Store's own type of roles.
func (in Input) Options() (o policy.Options, err error) {
	if in.Roles != "" {
		typ, relation, found := strings.Cut(in.Roles, "#")
		if !found || typ == "" || relation == "" {
			return o, fmt.Errorf("roles %.100q: name a type and its relation, such as role#assignee", in.Roles)
		}
		o.RoleType, o.RoleRelation = typ, relation
	}
	role := o.OrDefault()
	if o.Partial = in.Defined[role.RoleType]; o.Partial && !in.Defined[role.RoleType+"#"+role.RoleRelation] {
		return o, fmt.Errorf("type %s, which the Store defines, has no relation %s", role.RoleType, role.RoleRelation)
	}
	return o, o.Validate()
}

// known are the documents that are present, and those that are live though they have gone.
func (in Input) known() []Document {
	known := map[string]Document{}
	for _, d := range in.Documents {
		known[d.Name] = d
	}
	for _, m := range in.Has {
		name := m.Annotations[corev1alpha1.DocumentAnnotation]
		live := new(iaplv1alpha1.Policy)
		if name == corev1alpha1.Roles || json.Unmarshal([]byte(m.Annotations[corev1alpha1.PolicyAnnotation]), live) != nil {
			continue // Somebody spoiled it: it counts for nothing, and is made again.
		}
		d := known[name]
		d.Name, d.Live = name, live
		known[name] = d
	}
	for name, d := range known {
		d.changed = d.Present == nil || d.Live == nil || !equality.Semantic.DeepEqual(d.Present, d.Live)
		known[name] = d
	}
	return slices.SortedFunc(maps.Values(known), Document.compare)
}

// steps make what was chosen live. Without a policy, all stays as it is.
func (in Input) steps(s *selection, p *policy.Policy) Steps {
	steps := Steps{Verdicts: map[string]Verdict{}}
	kept := map[string]bool{}
	has := map[string]*corev1alpha1.AuthorizationModel{}
	for _, m := range in.Has {
		has[m.Name] = m
		kept[m.Name] = p == nil
	}
	for i, demoted := range s.demoted {
		if demoted {
			kept[in.nameOf(s.documents[i].Name)], kept[in.nameOf(corev1alpha1.Roles)] = true, true
		}
	}
	for _, w := range in.wanted(s, p) {
		kept[w.Name] = true
		if old := has[w.Name]; old == nil || old.DeletionTimestamp == nil && !old.Holds(&w) {
			steps.Apply = append(steps.Apply, w)
		}
	}
	for name, old := range has {
		if !kept[name] && old.DeletionTimestamp == nil {
			steps.Delete = append(steps.Delete, name)
		}
	}
	slices.Sort(steps.Delete)
	for i, d := range s.documents {
		if d.Present == nil {
			continue
		}
		v := Verdict{Findings: s.findings(i)}
		if name := in.nameOf(d.Name); kept[name] {
			v.AuthorizationModel = name
		}
		steps.Verdicts[d.Name] = v
	}
	return steps
}
