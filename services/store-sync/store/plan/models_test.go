package plan_test

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/modeltest"
	"github.com/entail-dev/entail/services/internal/seeds"
	"github.com/entail-dev/entail/services/store-sync/model"
	policyplan "github.com/entail-dev/entail/services/store-sync/policymodule/plan"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// fewHistories take about 3 seconds of one core. ENTAIL_ROUNDS asks for more.
const fewHistories = 30

func TestDecideKeepsTheRulesOfModelsInRandomHistories(t *testing.T) {
	modeltest.CheckRandomHistories(t, seeds.RoundCount(t, fewHistories), seeds.FirstSeed(t), func() modeltest.SystemUnderTest { return newSimulatedHistory() })
}

func TestDecideKeepsTheRulesOfModelsInRareHistories(t *testing.T) {
	modeltest.CheckRareHistories(t, func() modeltest.SystemUnderTest { return newSimulatedHistory() })
}

// simulatedHistory is a Store whose objects change, as plain data. It drives [plan.Decide] as the service does.
type simulatedHistory struct {
	in        plan.Input
	documents []policyplan.Document
	texts     map[string]string // texts holds what documents declare, by name.
	latest    *openfgav1.AuthorizationModel
	owners    map[string]string // owners holds the origins of the definitions in latest.
}

func newSimulatedHistory() *simulatedHistory {
	w := newSimulatedStore()
	h := &simulatedHistory{in: w.input()}
	h.in.Store.Status.StoreID = "S"
	return h
}

// ApplyAndSettle implements [modeltest.SystemUnderTest]. The first decision must be the last: another one, from what it recorded, changes nothing.
func (h *simulatedHistory) ApplyAndSettle(w modeltest.Declarations) (modeltest.LiveState, error) {
	if err := h.declare(w); err != nil {
		return modeltest.LiveState{}, err
	}
	h.decide()
	first := h.state(w)
	h.decide()
	again := h.state(w)
	if !maps.Equal(again.Definitions, first.Definitions) || !maps.Equal(again.Live, first.Live) || !maps.Equal(textsOfOwners(again), textsOfOwners(first)) {
		return again, fmt.Errorf("the second decision differs from the first: got %v, want %v", again, first)
	}
	return first, nil
}

// textsOfOwners returns the live text of each definition's owner. Modules with equal text count as one.
func textsOfOwners(s modeltest.LiveState) map[string]string {
	texts := map[string]string{}
	for k, owner := range s.Owners {
		texts[k] = cmp.Or(s.Live[owner], owner)
	}
	return texts
}

// declare makes the objects those of a world.
func (h *simulatedHistory) declare(w modeltest.Declarations) error {
	s := h.in.Store
	s.Generation++
	s.Spec.CoreModule, s.Annotations = w.Core, nil
	if w.RolesType {
		s.Annotations = map[string]string{iaplv1alpha1.RolesAnnotation: "role#assignee"}
	}
	h.declareModules(w.Modules)
	h.in.Provided = nil
	for _, d := range w.Discovered {
		h.in.Provided = append(h.in.Provided, model.Module{
			Origin: model.ModuleOrigin{Kind: model.Discovered, Name: d.Name}, API: d.Name, Base: corev1alpha1.AccountType, DSL: d.Text,
		})
	}
	return h.declareDocuments(w.Documents)
}

// declareModules keeps the status of a module that is the same object, and of those that are made of documents.
func (h *simulatedHistory) declareModules(declared []modeltest.Module) {
	var modules []plan.ModelObject
	known := map[string]*corev1alpha1.AuthorizationModel{}
	for _, m := range h.in.Modules {
		if m.IsFromDocument() {
			modules = append(modules, m)
		} else {
			known[m.Value.Name] = m.Value
		}
	}
	for _, d := range declared {
		m := module(d.Name, d.Text)
		m.Value.CreationTimestamp = created(d.Created)
		if old := known[d.Name]; old != nil && old.CreationTimestamp == m.Value.CreationTimestamp {
			m.Value.Status, m.Value.Generation = old.Status, old.Generation
			if old.Spec.Model != d.Text {
				m.Value.Generation++
			}
		}
		modules = append(modules, m)
	}
	h.in.Modules = modules
}

func (h *simulatedHistory) declareDocuments(declared []modeltest.Document) error {
	h.documents, h.texts = nil, map[string]string{}
	for _, d := range declared {
		p := new(iaplv1alpha1.Policy)
		if err := yaml.UnmarshalStrict([]byte(d.Text), p); err != nil {
			return fmt.Errorf("document %s: %w", d.Name, err)
		}
		h.documents = append(h.documents, policyplan.Document{Name: d.Name, UID: strconv.Itoa(d.Created), Present: p, Created: created(d.Created).Time})
		h.texts[d.Name] = d.Text
	}
	return nil
}

func created(at int) metav1.Time { return metav1.NewTime(time.Unix(int64(at), 0)) }

// decide makes one decision, and records what is live from then on.
func (h *simulatedHistory) decide() {
	h.in, _ = plan.DecideModel(h.in, h.documents, model.Limits{})
	if h.in.MergeErr == nil {
		h.latest, h.owners = h.in.Merged.Model, map[string]string{}
		for _, d := range h.in.Merged.Definitions {
			h.owners[definitionName(d)] = originName(d.Origin)
		}
	}
	obs := plan.Observed{LatestOf: "S", Latest: h.latest, Listed: true, Named: []plan.OpenFGAStore{{ID: "S", Name: "demo"}}}
	for _, m := range h.in.Modules {
		m.Value.Status, _ = plan.DesiredModuleStatus(m.Value, plan.ModuleVerdict(h.in, obs, m.Key)).Fields.(corev1alpha1.AuthorizationModelStatus)
	}
	h.in.Store.Status = statusFromAPIServer(plan.DesiredStoreStatus(h.in, obs))
}

func definitionName(d model.Definition) string {
	switch {
	case d.Condition != "":
		return "condition " + d.Condition
	case d.Relation != "":
		return d.Type + "#" + d.Relation
	default:
		return d.Type
	}
}

// originName returns what [modeltest.LiveState] calls an object.
func originName(o model.ModuleOrigin) string {
	if o == plan.DocumentOrigin(corev1alpha1.Roles) {
		return modeltest.RolesName
	}
	return o.String()
}

// state returns what is live by the last model, and what counts as live by the statuses.
func (h *simulatedHistory) state(w modeltest.Declarations) modeltest.LiveState {
	s := modeltest.LiveState{Definitions: modeltest.ModelDefinitions(h.latest), Owners: maps.Clone(h.owners), Live: map[string]string{}}
	merged := map[string]bool{}
	for _, m := range h.in.Store.Status.Modules {
		merged[m.Source] = m.State == corev1alpha1.ModuleState(model.Merged) || m.State == corev1alpha1.ModuleState(model.Duplicate)
	}
	if merged["store/demo"] {
		s.Live[modeltest.CoreName] = w.Core
	}
	for _, d := range w.Discovered {
		if merged["discovered/"+d.Name] {
			s.Live["discovered/"+d.Name] = d.Text
		}
	}
	for _, m := range h.in.Modules {
		document := m.Value.Annotations[corev1alpha1.DocumentAnnotation]
		switch {
		case h.latest == nil && document != "" && document != corev1alpha1.Roles:
			s.Live["policydocument/"+document] = h.policy(m.Value, document)
		case !meta.IsStatusConditionTrue(m.Value.Status.Conditions, corev1alpha1.Merged):
		case document == "":
			s.Live["authorizationmodel/"+m.Value.Name] = m.Value.Spec.Model
		case document != corev1alpha1.Roles:
			s.Live["policydocument/"+document] = h.policy(m.Value, document)
		}
	}
	return s
}

// policy returns the text that is live of a document: the declared one, if that is all of it.
func (h *simulatedHistory) policy(m *corev1alpha1.AuthorizationModel, document string) string {
	live, declared := new(iaplv1alpha1.Policy), new(iaplv1alpha1.Policy)
	text := m.Annotations[corev1alpha1.PolicyAnnotation]
	if yaml.Unmarshal([]byte(text), live) == nil && yaml.Unmarshal([]byte(h.texts[document]), declared) == nil && equality.Semantic.DeepEqual(live, declared) {
		return h.texts[document]
	}
	return text
}
