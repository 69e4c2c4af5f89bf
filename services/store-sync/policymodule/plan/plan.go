package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/store-sync/model"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// Input holds everything that the policy of one Store depends on.
type Input struct {
	Store corev1alpha1.StoreRef
	// Roles is the place of roles in the Store's model, such as "role#assignee". The default is "role#subject".
	Roles string
	// Defined holds the live types of all modules that no policy made, and their relations as type#relation.
	Defined map[string]bool
	// Room is the space for documents in the Store's model. It is nil if that is unknown.
	Room *ModelBudget
	// Documents are the existing documents, in any order. Their field Live is not used.
	Documents []Document
	// Has lists the AuthorizationModels that were made from documents before.
	Has []*corev1alpha1.AuthorizationModel
}

// AddPreviewedDocument adds a document. If one with its name exists, Preview replaces only the text of that and keeps its age.
func (in *Input) AddPreviewedDocument(d Document) {
	i := slices.IndexFunc(in.Documents, func(has Document) bool { return has.Name == d.Name })
	if i < 0 {
		in.Documents = append(in.Documents, d)
		return
	}
	in.Documents[i].Present = d.Present
}

// Plan holds the changes of AuthorizationModels and the results for documents.
type Plan struct {
	moduleplan.Plan

	// Validations holds the results by the names of the existing documents.
	Validations map[string]DocumentValidation
	// Texts holds the part of each document in the policy that will be live, empty if the document is refused.
	Texts map[string]*iaplv1alpha1.Policy
}

// DocumentValidation is the result for one document of the policy.
type DocumentValidation struct {
	// Findings are the first errors, see [MaxFindings]. A valid document has none.
	Findings []iaplv1alpha1.Finding
	// Errors is the number of all errors.
	Errors int
	// AuthorizationModel names the object with the module of the document, or of its last valid text. It is "" if no
	// part is live.
	AuthorizationModel string
}

// maxRounds bounds the rounds that try refused texts again.
const maxRounds = 8

// DecideDocuments plans the changes from the live texts to the present ones. The order of neither matters. Make tries a
// refused text again beside the accepted ones, so that another pass finds nothing to do.
func DecideDocuments(in Input) Plan {
	options, wrong := in.PolicyOptions()
	s := in.newDocumentSelection(in.documentsWithLiveTexts(), options)
	if wrong != nil {
		s.refuseAllChanges(policy.Diagnostics{{
			Code: policy.CodeOption, Severity: policy.Error, Message: wrong.Error(),
			Hint: fmt.Sprintf("annotate Store %s with its type of roles and the relation of their holders, such as %s: role#assignee",
				in.Store.Name, iaplv1alpha1.RolesAnnotation),
		}})
	}
	if wrong != nil && (!options.Partial || options.Validate() != nil) { // The place of roles is unknown, so no module can be made.
		s.result.texts = s.textsWithChanges(nil)
		return in.planForSelection(s)
	}
	s.dropInvalidChanges()
	for range maxRounds {
		if wrong != nil || s.hasReachedFixpoint() {
			break
		}
		s = in.newDocumentSelection(s.acceptedDocuments(), options)
		s.dropInvalidChanges()
	}
	return in.planForSelection(s)
}

// DecideUntilStable plans beside the modules that are live once the plan is carried out: types of documents may let in a
// module, and that may define what another document declares. merged returns the merge after a plan, or false if it
// fails. Where no plan suits its own effect, Settle returns the first one.
func DecideUntilStable(in Input, plan func(Input) Plan, merged func(moduleplan.Plan) (model.MergeResult, model.Limits, bool)) Plan {
	first := plan(in)
	for todo, round := first, 0; round < maxRounds; round++ {
		after, limits, ok := merged(todo.Plan)
		if !ok {
			break
		}
		before := in
		if in.SetOtherModules(after, limits); maps.Equal(before.Defined, in.Defined) && equality.Semantic.DeepEqual(before.Room, in.Room) {
			return todo
		}
		todo = plan(in)
	}
	return first
}

// PolicyOptions returns the options of the language, with the Store's own type of roles. They are partial if a live module
// that no policy made defines that type.
func (in Input) PolicyOptions() (o policy.Options, err error) {
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

// documentsWithLiveTexts returns the documents with their live texts, sorted by their claims.
func (in Input) documentsWithLiveTexts() []Document {
	live, uid := map[string]*iaplv1alpha1.Policy{}, map[string]string{}
	for _, m := range in.Has {
		uid[m.Annotations[corev1alpha1.DocumentAnnotation]] = m.Annotations[corev1alpha1.DocumentUIDAnnotation]
		text := new(iaplv1alpha1.Policy)
		if json.Unmarshal([]byte(m.Annotations[corev1alpha1.PolicyAnnotation]), text) == nil { // An unreadable annotation was edited: the object is made again.
			live[m.Annotations[corev1alpha1.DocumentAnnotation]] = text
		}
	}
	documents := slices.Clone(in.Documents)
	for i := range documents {
		d := &documents[i]
		if made := uid[d.Name]; made != "" && made != d.UID { // Earlier releases recorded none.
			delete(live, d.Name)
		}
		d.setLiveText(live[d.Name])
	}
	slices.SortFunc(documents, Document.compareClaims)
	return documents
}

// planForSelection returns the plan that makes the selection live. Without a policy, the modules of existing documents stay as they
// are.
func (in Input) planForSelection(s *documentSelection) Plan {
	frozen := s.result.policy == nil
	kept := map[string]bool{in.modelNameOf(corev1alpha1.Roles): frozen}
	desired := in.desiredModels(s)
	for _, o := range desired {
		kept[o.Name] = true
	}
	for _, d := range s.documents {
		kept[in.modelNameOf(d.Name)] = kept[in.modelNameOf(d.Name)] || frozen && d.Live != nil
	}
	keep := func(m *corev1alpha1.AuthorizationModel) bool { return kept[m.Name] }
	result := Plan{
		Plan:        moduleplan.DecideChanges(in.Has, desired, keep),
		Validations: map[string]DocumentValidation{}, Texts: map[string]*iaplv1alpha1.Policy{},
	}
	for i, d := range s.documents {
		result.Texts[d.Name] = cmp.Or(s.result.texts[i], &iaplv1alpha1.Policy{})
		v := DocumentValidation{Findings: s.statusFindings(i), Errors: len(s.refused[i])}
		if name := in.modelNameOf(d.Name); kept[name] {
			v.AuthorizationModel = name
		}
		result.Validations[d.Name] = v
	}
	return result
}
