package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/model"
	policyplan "github.com/entail-dev/entail/services/store-sync/policymodule/plan"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// storeFixture is a Store with PolicyDocuments and discovered modules, as plain data.
type storeFixture struct {
	t         *testing.T
	in        plan.Input
	documents []policyplan.Document
	verdicts  map[string]policyplan.DocumentValidation
	clock     int64
}

const (
	accounts = "module core\n\ntype user\n\ntype account\n  relations\n    define owner: [user]\n    define member: [user] or owner\n"
	secrets  = "module secrets\n\nextend type account\n  relations\n    define create_core_secrets: owner\n\n" +
		"type core_secret\n  relations\n    define parent: [account]\n    define get: owner from parent\n"
	org = "resourceTypes: [{name: org, idPrefix: idntorg}]\nactions: [{name: x_get}, {name: x_set}]\nactionBindings:\n" +
		"- {actionName: x_get, typeName: org, conditions: [{roleBinding: {}}]}\n"
	orgSet = "- {actionName: x_set, typeName: org, conditions: [{roleBinding: {}}]}\n"
)

// newStoreFixture returns a Store whose core module, document and discovered module are live.
func newStoreFixture(t *testing.T) *storeFixture {
	t.Helper()
	w := newSimulatedStore()
	w.store.Spec.CoreModule = accounts
	s := &storeFixture{t: t, in: w.input()}
	s.in.Provided = []model.Module{{
		Origin: model.ModuleOrigin{Kind: model.Discovered, Name: "secrets"}, API: "secrets", Base: "account", DSL: secrets,
	}}
	s.document("team/org", org+orgSet)
	s.settle()
	s.has("org#x_set", "core_secret#get", "account#create_core_secrets", "role#subject")
	return s
}

func (s *storeFixture) document(name, text string) {
	s.t.Helper()
	p := new(iaplv1alpha1.Policy)
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		s.t.Fatal(err)
	}
	for i := range s.documents {
		if s.documents[i].Name == name {
			s.documents[i].Present = p
			return
		}
	}
	s.clock++
	s.documents = append(s.documents, policyplan.Document{Name: name, Present: p, Created: time.Unix(s.clock, 0)})
}

// module creates an AuthorizationModel, or edits it.
func (s *storeFixture) module(name, text string) {
	for _, m := range s.in.Modules {
		if m.Value.Name == name {
			m.Value.Spec.Model = text
			return
		}
	}
	m := module(name, text)
	s.clock++
	m.Value.CreationTimestamp = metav1.NewTime(time.Unix(s.clock, 0))
	s.in.Modules = append(s.in.Modules, m)
}

// settle decides and records the live texts until nothing changes. Already the first decision must be right.
func (s *storeFixture) settle() {
	s.t.Helper()
	var first string
	for round := range 3 {
		decided, todo := plan.DecideModel(s.in, s.documents, model.Limits{})
		if decided.MergeErr != nil {
			s.t.Fatal(decided.MergeErr)
		}
		s.in, s.verdicts = decided, todo.Validations
		is := fmt.Sprint(decided.Merged.Model)
		if round == 0 {
			first = is
		} else if is != first {
			s.t.Fatalf("round %d decides otherwise: got\n%s\nwant\n%s", round, is, first)
		}
		s.record()
	}
}

func (s *storeFixture) record() {
	obs := plan.Observed{LatestOf: "S", Latest: s.in.Merged.Model, Listed: true, Named: []plan.OpenFGAStore{{ID: "S", Name: "demo"}}}
	s.in.Store.Status.StoreID = "S"
	for _, m := range s.in.Modules {
		m.Value.Status = plan.DesiredModuleStatus(m.Value, plan.ModuleVerdict(s.in, obs, m.Key)).Fields.(corev1alpha1.AuthorizationModelStatus)
	}
	s.in.Store.Status = statusFromAPIServer(plan.DesiredStoreStatus(s.in, obs))
}

// has expects definitions to be in the model, and those with a leading "!" not to be.
func (s *storeFixture) has(names ...string) {
	s.t.Helper()
	for _, n := range names {
		is, gone := strings.CutPrefix(n, "!")
		typ, relation, _ := strings.Cut(is, "#")
		if modelHas(s.in.Merged.Model, typ, relation) == gone {
			s.t.Errorf("in the model there is %s: %t", is, gone)
		}
	}
}

// state expects a module to be in a state.
func (s *storeFixture) state(source string, want model.MergeState) {
	s.t.Helper()
	for _, r := range s.in.Merged.Reports {
		if r.Origin.String() == source {
			if r.State != want {
				s.t.Errorf("%s is %s (%s), want %s", source, r.State, r.Message, want)
			}
			return
		}
	}
	s.t.Errorf("there is no %s", source)
}

func (s *storeFixture) valid(document string, want bool) {
	s.t.Helper()
	if found := s.verdicts[document].Findings; (len(found) == 0) != want {
		s.t.Errorf("findings on %s are %v", document, found)
	}
}

func TestDecideModelKeepsLiveDocumentBesideRejectedModule(t *testing.T) {
	for name, text := range map[string]string{
		"that claims its type":             "module mm\n\ntype org\n  relations\n    define v: [user]\n",
		"that cannot be read":              "module mm\n\ntype org\n  relations\n    defin v: [user]\n",
		"that is wrong for another reason": "module mm\n\ntype org\n\ntype more\n  relations\n    define v: [nope]\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStoreFixture(t)
			s.module("mm", text)
			s.settle()
			s.state("authorizationmodel/mm", model.Rejected)
			s.valid("team/org", true)
			s.document("team/org", org)
			s.document("team/box", "resourceTypes: [{name: box, idPrefix: idntbox}]\nactionBindings: [{actionName: x_get, typeName: box, conditions: [{roleBinding: {}}]}]\n")
			s.settle()
			s.has("!org#x_set", "org#x_get", "box#x_get")
			s.valid("team/org", true)
			s.valid("team/box", true)
		})
	}
}

func TestDecideModelKeepsModuleOfRolesBesideNewModule(t *testing.T) {
	for name, text := range map[string]string{
		"that is wrong for another reason": "module nm\n\ntype role\n  relations\n    define subject: [user]\n    define x: [nope]\n",
		"that is valid":                    "module nm\n\ntype role\n  relations\n    define subject: [user, user:*]\n",
		"that lacks the relation":          "module nm\n\ntype role\n",
		"that cannot be read":              "module nm\n\ntype role\n  relations\n    defin subject: [user]\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStoreFixture(t)
			s.module("nm", text)
			s.settle()
			s.state("authorizationmodel/nm", model.Rejected)
			s.state("policydocument/roles", model.Merged)
			s.state("policydocument/team/org", model.Merged)
			s.has("org#x_set", "role#subject")
			s.valid("team/org", true)
		})
	}
}

func TestDecideModelGivesTypeOfRolesToCoreModule(t *testing.T) {
	s := newStoreFixture(t)
	s.in.Store.Spec.CoreModule = accounts + "\ntype role\n  relations\n    define subject: [user]\n"
	s.settle()
	s.has("org#x_set", "role#subject")
	s.state("policydocument/team/org", model.Merged)
	s.valid("team/org", true)
}

func TestDecideModelKeepsDiscoveredModulesBesideNewModules(t *testing.T) {
	newcomers := map[string]func(*storeFixture){
		"a relation": func(s *storeFixture) {
			s.module("ds", "module ds\n\nextend type account\n  relations\n    define create_core_secrets: member\n")
		},
		"a type": func(s *storeFixture) { s.module("ds", "module ds\n\ntype core_secret\n") },
		"a document": func(s *storeFixture) {
			s.document("team/ds", "resourceTypes: [{name: core_secret, idPrefix: idntsec}]\n")
		},
		"an annotation that anybody can write": func(s *storeFixture) {
			s.module("ds", "module ds\n\ntype core_secret\n")
			s.in.Modules[len(s.in.Modules)-1].Value.Annotations = map[string]string{corev1alpha1.ResourceAnnotation: "secrets"}
		},
	}
	for name, comes := range newcomers {
		t.Run(name, func(t *testing.T) {
			s := newStoreFixture(t)
			comes(s)
			s.settle()
			s.state("discovered/secrets", model.Merged)
			s.has("core_secret#get", "account#create_core_secrets")
			if name == "a document" {
				s.valid("team/ds", false)
			} else {
				s.state("authorizationmodel/ds", model.Rejected)
			}
		})
	}
}

func TestDecideModelKeepsDiscoveredModulesOfEarlierRelease(t *testing.T) {
	s := newStoreFixture(t)
	s.in.Store.Status.Live.Discovered = nil
	s.module("ds", "module ds\n\ntype core_secret\n")
	s.settle()
	s.state("discovered/secrets", model.Merged)
}

func TestDecideModelKeepsRestOfDiscoveredModuleThatCoreModuleEvicts(t *testing.T) {
	s := newStoreFixture(t)
	s.in.Store.Spec.CoreModule = accounts + "\ntype core_secret\n"
	s.settle()
	s.state("discovered/secrets", model.LastGoodLive)
	s.has("!core_secret#get", "account#create_core_secrets")
	s.module("ds", "module ds\n\nextend type account\n  relations\n    define create_core_secrets: member\n")
	s.settle()
	s.state("authorizationmodel/ds", model.Rejected)
	s.in.Store.Spec.CoreModule = accounts
	s.settle()
	s.state("discovered/secrets", model.Merged)
}

func TestDecideModelHandsOverLivePartOfDiscoveredModule(t *testing.T) {
	s := newStoreFixture(t)
	s.module("secrets-demo", "# there can be no module\n")
	s.in.Modules[len(s.in.Modules)-1].Value.Annotations = map[string]string{
		corev1alpha1.ResourceAnnotation: "secrets", corev1alpha1.RejectedAnnotation: "no name",
	}
	s.in.Provided[0].Yields = true
	s.settle()
	s.state("authorizationmodel/secrets-demo", model.LastGoodLive)
	s.has("core_secret#get", "account#create_core_secrets")
}

func TestDecideModelKeepsDiscoveredModulesDuringTypoInCoreModule(t *testing.T) {
	for name, text := range map[string]string{
		"in the line of their base": strings.Replace(accounts, "type account", "typ account", 1),
		"that leaves nothing":       "",
		"elsewhere":                 strings.Replace(accounts, "type user", "type use", 1),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStoreFixture(t)
			s.in.Store.Spec.CoreModule = text
			s.settle()
			s.state("core", model.LastGoodLive)
			s.state("discovered/secrets", model.Merged)
			s.has("core_secret#get", "account#create_core_secrets")
		})
	}
}

func TestDecideModelOmitsDiscoveredModulesWithoutTheirBase(t *testing.T) {
	s := newStoreFixture(t)
	s.in.Store.Spec.CoreModule = "module core\n\ntype user\n"
	s.module("other", "module other\n\ntype account\n  relations\n    define owner: [user]\n")
	s.settle()
	s.has("!core_secret", "account#owner", "!account#create_core_secrets")
	for _, r := range s.in.Merged.Reports {
		if r.Origin.Kind == model.Discovered {
			t.Errorf("%+v is listed", r)
		}
	}
}

func TestDecideModelDoesNotCountRoomForRejectedModule(t *testing.T) {
	s := newStoreFixture(t)
	var large strings.Builder
	large.WriteString("module large\n\ntype org\n")
	for i := range 98 {
		fmt.Fprintf(&large, "\ntype t%d\n", i)
	}
	s.module("large", large.String())
	s.document("team/box", "resourceTypes: [{name: box, idPrefix: idntbox}]\n")
	s.settle()
	s.state("authorizationmodel/large", model.Rejected)
	s.has("box")
	s.valid("team/box", true)
}

func TestDecideModelKeepsTextOfTwin(t *testing.T) {
	s := newStoreFixture(t)
	s.module("a", dsl("folder"))
	s.module("b", dsl("folder"))
	s.settle()
	s.state("authorizationmodel/b", model.Duplicate)
	s.module("b", unreadable)
	s.settle()
	s.state("authorizationmodel/a", model.Merged)
	s.state("authorizationmodel/b", model.LastGoodLive)
	for i, m := range s.in.Modules {
		if m.Value.Name == "a" {
			s.in.Modules = append(s.in.Modules[:i:i], s.in.Modules[i+1:]...)
			break
		}
	}
	s.settle()
	s.has("folder#reader")
}

func TestDecideModelKeepsDefinitionThatModuleNeedsDespiteRejectedText(t *testing.T) {
	s := newStoreFixture(t)
	s.module("mine", "module mine\n\ntype folder\n  relations\n    define reader: [user]\n    define viewer: reader\n")
	s.settle()
	s.module("other", "module other\n\nextend type folder\n  relations\n    define reader: [user]\n    define more: [nope]\n")
	s.module("mine", "module mine\n\ntype folder\n  relations\n    define viewer: [nope]\n")
	s.settle()
	s.state("authorizationmodel/mine", model.LastGoodLive)
	s.has("folder#viewer", "folder#reader")
}
