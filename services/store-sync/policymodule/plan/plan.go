package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/policy"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// Input is what the policy of one Store depends on.
type Input struct {
	Store corev1alpha1.StoreRef
	// Roles is where the Store's model keeps roles, such as "role#assignee"; empty is "role#subject".
	Roles string
	// Defined are the types that are live in modules which no policy made, and their relations as type#relation.
	Defined map[string]bool
	// Room is what is left for documents in the Store's model, nil while nothing is known of that.
	Room *Room
	// Documents are those that are present, in any order; what is live of them does not matter.
	Documents []Document
	// Has are the AuthorizationModels that were made of documents before.
	Has []*corev1alpha1.AuthorizationModel
}

// Preview adds a document, or has it take the place of that of its name and keep its age.
func (in *Input) Preview(d Document) {
	i := slices.IndexFunc(in.Documents, func(has Document) bool { return has.Name == d.Name })
	if i < 0 {
		in.Documents = append(in.Documents, d)
		return
	}
	in.Documents[i].Present = d.Present
}

// Plan is what to do.
type Plan struct {
	moduleplan.Plan

	// Validations are by the names of documents that are present.
	Validations map[string]Validation
	// Texts are what documents say in the policy that is to be live; nothing where they are refused.
	Texts map[string]*iaplv1alpha1.Policy
}

// Validation is what became of a document in the policy.
type Validation struct {
	// Findings are the errors, the first of them where there are very many; none if it is valid.
	Findings []iaplv1alpha1.Finding
	// Errors is how many there are.
	Errors int
	// AuthorizationModel is the one that holds its module, if only of an earlier text; empty if nothing of it is live.
	AuthorizationModel string
}

// maxRounds bounds how often what was refused is looked at again.
const maxRounds = 8

// Make plans from what is live to what documents hold. It depends on neither's order. What was
// refused is tried again beside what was accepted, so that another pass finds nothing to do.
func Make(in Input) Plan {
	options, wrong := in.Options()
	s := in.newSelection(in.known(), options)
	if wrong != nil {
		s.bar(policy.Diagnostics{{
			Code: policy.CodeOption, Severity: policy.Error, Message: wrong.Error(),
			Hint: fmt.Sprintf("annotate Store %s with the type of roles and its relation to who has them, such as %s: role#assignee",
				in.Store.Name, iaplv1alpha1.RolesAnnotation),
		}})
	}
	if wrong != nil && (!options.Partial || options.Validate() != nil) { // Nobody knows where roles are, so no module can be made.
		s.result.texts = s.startingTexts(nil)
		return in.plan(s)
	}
	s.choose()
	for range maxRounds {
		if wrong != nil || s.settled() {
			break
		}
		s = in.newSelection(s.accepted(), options)
		s.choose()
	}
	return in.plan(s)
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

// known returns the documents with what is live of them, by their claims.
func (in Input) known() []Document {
	live, uid := map[string]*iaplv1alpha1.Policy{}, map[string]string{}
	for _, m := range in.Has {
		uid[m.Annotations[corev1alpha1.DocumentAnnotation]] = m.Annotations[corev1alpha1.DocumentUIDAnnotation]
		text := new(iaplv1alpha1.Policy)
		if json.Unmarshal([]byte(m.Annotations[corev1alpha1.PolicyAnnotation]), text) == nil { // Else somebody spoiled it: it is made again.
			live[m.Annotations[corev1alpha1.DocumentAnnotation]] = text
		}
	}
	documents := slices.Clone(in.Documents)
	for i := range documents {
		d := &documents[i]
		if made := uid[d.Name]; made != "" && made != d.UID { // Earlier releases recorded none.
			delete(live, d.Name)
		}
		d.live(live[d.Name])
	}
	slices.SortFunc(documents, Document.compare)
	return documents
}

// plan makes what was selected live. Without a policy, the modules of documents that are present stay as they are.
func (in Input) plan(s *selection) Plan {
	frozen := s.result.policy == nil
	kept := map[string]bool{in.nameOf(corev1alpha1.Roles): frozen}
	desired := in.desired(s)
	for _, o := range desired {
		kept[o.Name] = true
	}
	for _, d := range s.documents {
		kept[in.nameOf(d.Name)] = kept[in.nameOf(d.Name)] || frozen && d.Live != nil
	}
	keep := func(m *corev1alpha1.AuthorizationModel) bool { return kept[m.Name] }
	result := Plan{Plan: moduleplan.Compare(in.Has, desired, keep), Validations: map[string]Validation{}, Texts: map[string]*iaplv1alpha1.Policy{}}
	for i, d := range s.documents {
		result.Texts[d.Name] = cmp.Or(s.result.texts[i], &iaplv1alpha1.Policy{})
		v := Validation{Findings: s.findings(i), Errors: len(s.refused[i])}
		if name := in.nameOf(d.Name); kept[name] {
			v.AuthorizationModel = name
		}
		result.Validations[d.Name] = v
	}
	return result
}
