package plan_test

import (
	"encoding/json"
	"slices"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

func (s *storeFixture) remove(name string) {
	s.in.Modules = slices.DeleteFunc(slices.Clone(s.in.Modules), func(m plan.ModelObject) bool { return m.Value.Name == name })
}

// statusFromAPIServer returns a status as the API server returns it.
func statusFromAPIServer(status corev1alpha1.StoreStatus) (read corev1alpha1.StoreStatus) {
	if data, err := json.Marshal(status); err != nil || json.Unmarshal(data, &read) != nil {
		panic("a status cannot be stored") //nolint:forbidigo // It can.
	}
	return read
}

func TestDecideModelRecordsLackOfLiveDiscoveredModules(t *testing.T) {
	w := newSimulatedStore()
	w.store.Spec.CoreModule = accounts
	s := &storeFixture{t: t, in: w.input()}
	s.module("ds", "module ds\n\ntype core_secret\n")
	s.in.Provided = []model.Module{{
		Origin: model.ModuleOrigin{Kind: model.Discovered, Name: "secrets"}, API: "secrets", Base: "account", DSL: secrets,
	}}
	s.settle()
	s.state("discovered/secrets", model.Rejected)
	s.has("core_secret", "!core_secret#get", "!account#create_core_secrets")
}

const twin = "module twin\n\ntype extra\n\ntype folder\n  relations\n    define reader: [user]\n"

// newTwins returns a Store with two modules of equal text.
func newTwins(t *testing.T) *storeFixture {
	t.Helper()
	s := newStoreFixture(t)
	s.module("a", twin)
	s.module("b", twin)
	s.settle()
	s.state("authorizationmodel/b", model.Duplicate)
	return s
}

func TestDecideModelKeepsTextOfTwinThatIsEditedOtherwise(t *testing.T) {
	s := newTwins(t)
	s.module("a", "module a\n\ntype folder\n  relations\n    define reader: [nope]\n")
	s.module("b", "module b\n\ntype extra\n\ntype folder\n  relations\n    define reader: [nope]\n")
	s.settle()
	s.has("extra", "folder#reader")
	s.remove("a")
	s.settle()
	s.has("extra", "folder#reader")
}

func TestDecideModelReportsTextOfTwinWithRefusedEditAsLive(t *testing.T) {
	s := newTwins(t)
	s.module("a", "module twin\n\ntype extra\n\ntype folder\n  relations\n    define reader: [nope]\n")
	s.settle()
	s.state("authorizationmodel/a", model.LastGoodLive)
	s.state("authorizationmodel/b", model.Merged)
	s.has("extra", "folder#reader")
}

func TestDecideModelKeepsTwinWhoseOtherBecomesShorter(t *testing.T) {
	s := newTwins(t)
	s.module("a", "module twin\n\ntype folder\n  relations\n    define reader: [user]\n")
	s.settle()
	s.state("authorizationmodel/b", model.Merged)
	s.has("extra", "folder#reader")
	s.remove("b")
	s.settle()
	s.state("authorizationmodel/a", model.Merged)
	s.has("!extra", "folder#reader")
}

func TestDecideModelDropsEarlierDocumentOfSameName(t *testing.T) {
	s := newStoreFixture(t)
	s.documents[0].UID = "first"
	s.settle()
	s.has("org#x_get")
	s.document("team/org", org+"- {actionName: x_get, typeName: nope, conditions: [{roleBinding: {}}]}\n")
	s.settle()
	s.valid("team/org", false)
	s.has("org#x_get")
	s.documents[0].UID = "second"
	s.settle()
	s.has("!org")
}

func TestDecideModelRemovesTypeThatOnlyTakenRelationNeeded(t *testing.T) {
	const box = "type box\n  relations\n    define parent: "
	s := newStoreFixture(t)
	s.module("a", "module a\n\n"+box+"[doc]\n\ntype doc\n")
	s.settle()
	s.has("box#parent", "doc")
	s.in.Store.Spec.CoreModule = accounts + "\n" + box + "[box]\n"
	s.module("a", "module a\n\n"+box+"[doc]\n")
	s.settle()
	s.state("authorizationmodel/a", model.Rejected)
	s.has("box#parent", "!doc")
}

func TestDecideModelDoesNotTakeTypeOfModuleForTypeOfDocument(t *testing.T) {
	s := newStoreFixture(t)
	s.module("a", "module a\n\ntype box\n  relations\n    define viewer: [shelf]\n")
	s.settle()
	s.state("authorizationmodel/a", model.Rejected)
	s.document("team/box", "resourceTypes: [{name: box, idPrefix: idntbox}]\n"+
		"actionBindings: [{actionName: x_use, typeName: shelf, conditions: [{roleBinding: {}}]}]\n")
	s.document("team/shelf", "resourceTypes:\n- {name: shelf, idPrefix: idntshf, relationships: [{relation: parent, targetTypes: [{name: box}]}]}\n"+
		"actions: [{name: x_use}]\n")
	s.settle()
	s.state("authorizationmodel/a", model.Rejected)
	s.has("shelf#parent", "shelf#x_use", "!box#viewer")
}

func TestDecideModelAcceptsDocumentsBesideNewModuleThatTheyEnable(t *testing.T) {
	s := newStoreFixture(t)
	s.module("a", "module a\n\ntype shelf\n  relations\n    define parent: [box]\n")
	s.settle()
	s.state("authorizationmodel/a", model.Rejected)
	s.document("team/box", "resourceTypes: [{name: box, idPrefix: idntbox}]\n")
	s.document("team/shelf", "resourceTypes: [{name: shelf, idPrefix: idntshf}]\n")
	s.settle()
	s.state("authorizationmodel/a", model.Rejected)
	s.valid("team/box", true)
	s.valid("team/shelf", true)
	s.has("shelf", "!shelf#parent")
}

func TestDecideModelAcceptsDocumentBesideModuleThatAnotherDocumentEnds(t *testing.T) {
	s := newStoreFixture(t)
	s.document("team/case", "resourceTypes: [{name: case, idPrefix: idntcse}]\n")
	s.settle()
	s.module("a", "module a\n\ntype box\n  relations\n    define parent: [case]\n")
	s.document("team/case", "actions: [{name: x_use}]\n")
	s.document("team/box", "resourceTypes: [{name: box, idPrefix: idntbox}]\n")
	s.settle()
	s.state("authorizationmodel/a", model.Rejected)
	s.valid("team/box", true)
	s.has("box", "!box#parent", "!case")
}

func TestDecideModelGivesNewNameToOlderDocument(t *testing.T) {
	const shelf, room, hall = "{name: shelf, idPrefix: idntshf}", "{name: room, idPrefix: idntrom}", "{name: hall, idPrefix: idnthal}"
	s := newStoreFixture(t)
	s.document("team/older", "resourceTypes: ["+room+"]\nactionBindings: [{actionName: x_get, typeName: nope, conditions: [{roleBinding: {}}]}]\n")
	s.document("team/newer", "resourceTypes: ["+hall+"]\n")
	s.settle()
	s.valid("team/older", false)
	s.has("hall", "!room")
	s.document("team/older", "resourceTypes: ["+room+", "+shelf+"]\n")
	s.document("team/newer", "resourceTypes: ["+hall+", "+shelf+"]\n")
	s.settle()
	s.valid("team/older", true)
	s.valid("team/newer", false)
	s.has("hall", "room", "shelf")
}
