//go:build integration

package storesync_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// get returns the operation with which store-sync reads the object from the API server.
func get(f testenv.Forgery) string {
	path := "GET /apis/" + f.Kind.Group + "/" + f.Kind.Version + "/"
	if f.Namespace != "" {
		path += "namespaces/" + f.Namespace + "/"
	}
	return path + f.Kind.Resource + "/" + f.Name
}

// answers returns how often the API server has returned the object.
func (b *bed) answers(f testenv.Forgery) int {
	status := strings.Replace(get(f), "GET", "PATCH", 1) + "/status"
	return b.Kube.CallsByOp()[get(f)] + b.Kube.CallsByOp()[status]
}

func field(object map[string]any, name string) map[string]any {
	inner, _ := object[name].(map[string]any)
	return inner
}

// evil returns a text that no author declared.
func evil(text any) string {
	return fmt.Sprint(text) + "\ntype evil\n  relations\n    define owner: [user]\n"
}

func evilText(name string) func(*event.Change, map[string]any) {
	return func(c *event.Change, o map[string]any) {
		c.Generation++
		field(o, "spec")[name] = evil(field(o, "spec")[name])
	}
}

func ended(c *event.Change, _ map[string]any) { c.Deleted = true }

func relabelled(store string) func(*event.Change, map[string]any) {
	return func(_ *event.Change, o map[string]any) {
		field(o, "metadata")["labels"] = map[string]any{corev1alpha1.StoreNameLabel: store}
	}
}

// forgeries returns one forgery for every kind from which models are made.
func forgeries() map[string]testenv.Forgery {
	stores, models, documents, definitions := kinds.Stores(), kinds.AuthorizationModels(), kinds.PolicyDocuments(), kinds.Definitions()
	return map[string]testenv.Forgery{
		"a core module": {Kind: stores, Name: "demo", Edit: evilText("coreModule")},
		"a core module that was live": {Kind: stores, Name: "demo", Edit: func(_ *event.Change, o map[string]any) {
			field(field(o, "status"), "live")["coreModule"] = evil(field(o, "spec")["coreModule"])
			field(o, "spec")["coreModule"] = "module typo\n\ntype\n"
		}},
		"a module": {Kind: models, Name: "docs", Edit: evilText("model")},
		"a module that was live": {Kind: models, Name: "docs", Edit: func(_ *event.Change, o map[string]any) {
			field(field(o, "status"), "live")["model"] = evil(field(o, "spec")["model"])
			field(o, "spec")["model"] = "module typo\n\ntype\n"
		}},
		"a module that never was": {Kind: models, Name: "phantom", Like: "docs", Edit: func(c *event.Change, o map[string]any) {
			c.UID = "phantom"
			field(o, "metadata")["name"], field(o, "metadata")["uid"] = "phantom", "phantom"
			field(o, "spec")["model"], o["status"] = evil("module phantom\n"), nil
		}},
		"the end of a module": {Kind: models, Name: "docs", Edit: ended},
		"a module of another Store": {Kind: models, Name: "docs", Edit: func(_ *event.Change, o map[string]any) {
			field(field(o, "spec"), "storeRef")["name"] = "other"
		}},
		"a document": {Kind: documents, Namespace: "default", Name: "tenant", Edit: func(c *event.Change, o map[string]any) {
			c.Generation++
			types, _ := field(o, "spec")["resourceTypes"].([]any)
			field(o, "spec")["resourceTypes"] = append(types, map[string]any{"name": "evil", "idPrefix": "evilevl"})
		}},
		"the end of a document":         {Kind: documents, Namespace: "default", Name: "tenant", Edit: ended},
		"a label of a definition":       {Kind: definitions, Name: "gadgets.example.com", Edit: relabelled("demo")},
		"no label of a definition":      {Kind: definitions, Name: "widgets.example.com", Edit: relabelled("")},
		"the end of a definition":       {Kind: definitions, Name: "widgets.example.com", Edit: ended},
		"what was generated":            {Kind: models, Name: "widgets-demo", Edit: evilText("model")},
		"the end of what was generated": {Kind: models, Name: "widgets-demo", Edit: ended},
	}
}

// declared returns a bed with a Store that has modules of every kind.
func declared(t *testing.T) (*bed, *testenv.Running) {
	t.Helper()
	b := newBed(t)
	b.Reflector()
	r := b.serve(ordinary(), unprivileged)
	b.applyStore("demo", withAccounts)
	b.patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:"role#assignee"}}}`, iaplv1alpha1.RolesAnnotation))
	b.applyModule("docs", "demo", dsl("folder"))
	b.document("tenant", tenantPart)
	b.define(widgets("example.com", "demo"), definition{"example.com", "gadgets", "Gadget", "v1alpha1", ""})
	b.awaitModule("docs", "Merged=True/Merged")
	b.awaitModule("widgets-demo", "Merged=True/Merged")
	b.awaitDocument("tenant", "Merged=True/Merged")
	b.await("demo", "ModelSynced=True/Merged", "ModulesInSync=True/AllLive")
	b.CaughtUp(topology.StoreSync)
	b.Settled()
	return b, r
}

// given returns everything that store-sync writes: the models in OpenFGA, and AuthorizationModels.
func (b *bed) given() string {
	b.T.Helper()
	all := []string{fmt.Sprint(b.OpenFGA.WritesByOp(), b.types())}
	for op, n := range b.Kube.WritesByOp() {
		if strings.Contains(op, "/authorizationmodels/") && !strings.HasSuffix(op, "/status") {
			all = append(all, fmt.Sprint(op, n))
		}
	}
	for _, m := range b.models() {
		all = append(all, fmt.Sprint(m.GetName(), m.GetGeneration()))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func (b *bed) expectNothingEvil() {
	b.T.Helper()
	for _, kind := range []kinds.Kind{kinds.Stores(), kinds.AuthorizationModels()} {
		for _, o := range b.List(kind).Items {
			if text := fmt.Sprint(o.Object); strings.Contains(text, "evil") {
				b.T.Errorf("%s %s says %s", kind.Kind, o.GetName(), text)
			}
		}
	}
}

func TestNothingIsMadeLiveOnTheWordOfTheBusAlone(t *testing.T) {
	for what, f := range forgeries() {
		t.Run(what, func(t *testing.T) {
			b, _ := declared(t)
			before, asked := b.given(), b.Kube.CallsByOp()[get(f)]
			b.Forge(f, 1_000_000)
			testenv.Eventually(t, soon, func() error {
				if now := b.given(); now != before {
					t.Fatalf("was\n%s\nis\n%s", before, now)
				}
				if b.Kube.CallsByOp()[get(f)] == asked {
					return errors.New("the API server was not asked")
				}
				return nil
			})
			b.applyModule("honest", "demo", dsl("honest"))
			b.awaitModule("honest", "Merged=True/Merged")
			b.await("demo", "ModelSynced=True/Merged", "ModulesInSync=True/AllLive")
			b.Settled()
			b.awaitTypes("honest", "folder", "tenant", "example_com_widget", "-evil", "-example_com_gadget")
			b.expectNothingEvil()
		})
	}
}

// A service that starts trusts its first messages, which may even have the version of the API server's object.
func TestNothingIsMadeLiveOfWhatLooksLikeTheNewestVersion(t *testing.T) {
	for what, f := range forgeries() {
		if f.Like != "" || f.Kind == kinds.PolicyDocuments() || f.Kind == kinds.Definitions() {
			continue
		}
		t.Run(what, func(t *testing.T) {
			b, r := declared(t)
			before := b.given()
			r.Stop()
			b.Forge(f, 0)
			asked := b.answers(f)
			b.serve(ordinary(), unprivileged)
			testenv.Eventually(t, soon, func() error {
				if b.answers(f) == asked {
					return errors.New("the API server was not asked")
				}
				return nil
			})
			b.Settled()
			if now := b.given(); now != before {
				t.Errorf("was\n%s\nis\n%s", before, now)
			}
			b.expectNothingEvil()
			b.applyModule("honest", "demo", dsl("honest"))
			b.awaitModule("honest", "Merged=True/Merged")
			b.awaitTypes("honest", "folder", "tenant", "example_com_widget", "-evil")
			b.expectNothingEvil()
		})
	}
}
