//go:build integration

package storesync_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
)

// forgery is a message that whoever has stolen the watcher's rights on the bus publishes of an object.
type forgery struct {
	kind            kinds.Kind
	namespace, name string
	// like names the object that it is a copy of; empty if it is of that very object.
	like string
	edit func(c *event.Change, object map[string]any)
}

// publish publishes it, so many versions after what the bus told last.
func (f forgery) publish(b *bed, later int) {
	b.T.Helper()
	key := event.Key{Cluster: "local", GroupResource: f.kind.GroupResource, Namespace: f.namespace, Name: f.name}
	was := key
	if f.like != "" {
		was.Name = f.like
	}
	stream, err := b.JS.Stream(b.T.Context(), topology.Changes)
	if err != nil {
		b.T.Fatal(err)
	}
	last, err := stream.GetLastMsgForSubject(b.T.Context(), topology.ChangeSubject(was))
	if err != nil {
		b.T.Fatal(err)
	}
	c, err := event.Unmarshal(was, last.Data)
	if err != nil {
		b.T.Fatal(err)
	}
	object := map[string]any{}
	if err := json.Unmarshal(c.Object, &object); err != nil {
		b.T.Fatal(err)
	}
	version, err := strconv.Atoi(c.ResourceVersion)
	if err != nil {
		b.T.Fatal(err)
	}
	c.Key, c.ResourceVersion = key, strconv.Itoa(version+later)
	f.edit(&c, object)
	if c.Object, err = json.Marshal(object); err != nil {
		b.T.Fatal(err)
	}
	data, err := c.Marshal()
	if err != nil {
		b.T.Fatal(err)
	}
	if _, err := b.JS.Publish(b.T.Context(), topology.ChangeSubject(key), data); err != nil {
		b.T.Fatal(err)
	}
}

// get is how the API server is asked about the object.
func (f forgery) get() string {
	path := "GET /apis/" + f.kind.Group + "/" + f.kind.Version + "/"
	if f.namespace != "" {
		path += "namespaces/" + f.namespace + "/"
	}
	return path + f.kind.Resource + "/" + f.name
}

// answers is how often the API server has said how the object is.
func (b *bed) answers(f forgery) int {
	status := strings.Replace(f.get(), "GET", "PATCH", 1) + "/status"
	return b.Kube.CallsByOp()[f.get()] + b.Kube.CallsByOp()[status]
}

// touch has the bus tell of the object as it is, twice: the first may be of the forged version.
func (f forgery) touch(b *bed) {
	b.T.Helper()
	for i := range 2 {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"look":"%d"}}}`, i)
		if _, err := b.Resource(f.kind).Namespace(f.namespace).Patch(b.T.Context(), f.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			b.T.Fatal(err)
		}
	}
}

func field(object map[string]any, name string) map[string]any {
	inner, _ := object[name].(map[string]any)
	return inner
}

// evil is what nobody declares.
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

// forgeries are of every kind that models are made of.
func forgeries() map[string]forgery {
	stores, models, documents, definitions := kinds.Stores(), kinds.AuthorizationModels(), kinds.PolicyDocuments(), kinds.Definitions()
	return map[string]forgery{
		"a core module": {stores, "", "demo", "", evilText("coreModule")},
		"a core module that was live": {stores, "", "demo", "", func(_ *event.Change, o map[string]any) {
			field(field(o, "status"), "live")["coreModule"] = evil(field(o, "spec")["coreModule"])
			field(o, "spec")["coreModule"] = "module typo\n\ntype\n"
		}},
		"a module": {models, "", "docs", "", evilText("model")},
		"a module that was live": {models, "", "docs", "", func(_ *event.Change, o map[string]any) {
			field(field(o, "status"), "live")["model"] = evil(field(o, "spec")["model"])
			field(o, "spec")["model"] = "module typo\n\ntype\n"
		}},
		"a module that never was": {models, "", "phantom", "docs", func(c *event.Change, o map[string]any) {
			c.UID = "phantom"
			field(o, "metadata")["name"], field(o, "metadata")["uid"] = "phantom", "phantom"
			field(o, "spec")["model"], o["status"] = evil("module phantom\n"), nil
		}},
		"the end of a module": {models, "", "docs", "", ended},
		"a module of another Store": {models, "", "docs", "", func(_ *event.Change, o map[string]any) {
			field(field(o, "spec"), "storeRef")["name"] = "other"
		}},
		"a document": {documents, "default", "tenant", "", func(c *event.Change, o map[string]any) {
			c.Generation++
			types, _ := field(o, "spec")["resourceTypes"].([]any)
			field(o, "spec")["resourceTypes"] = append(types, map[string]any{"name": "evil", "idPrefix": "evilevl"})
		}},
		"the end of a document":         {documents, "default", "tenant", "", ended},
		"a label of a definition":       {definitions, "", "gadgets.example.com", "", relabelled("demo")},
		"no label of a definition":      {definitions, "", "widgets.example.com", "", relabelled("")},
		"the end of a definition":       {definitions, "", "widgets.example.com", "", ended},
		"what was generated":            {models, "", "widgets-demo", "", evilText("model")},
		"the end of what was generated": {models, "", "widgets-demo", "", ended},
	}
}

// declared is a bed in which a Store has modules of every kind.
func declared(t *testing.T) (*bed, *testbed.Running) {
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
	b.Settled()
	return b, r
}

// given is all that store-sync gives: the models in OpenFGA, and AuthorizationModels.
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
			before, asked := b.given(), b.Kube.CallsByOp()[f.get()]
			f.publish(b, 1)
			testbed.Eventually(t, soon, func() error {
				if now := b.given(); now != before {
					t.Fatalf("was\n%s\nis\n%s", before, now)
				}
				if n := b.Kube.CallsByOp()[f.get()] - asked; n == 0 || f.like == "" && n == 1 {
					return fmt.Errorf("the API server was asked %d times", n)
				}
				return nil
			})
			if f.like == "" {
				f.touch(b)
			}
			b.applyModule("honest", "demo", dsl("honest"))
			b.awaitModule("honest", "Merged=True/Merged")
			b.await("demo", "ModelSynced=True/Merged", "ModulesInSync=True/AllLive")
			b.Settled()
			b.awaitTypes("honest", "folder", "tenant", "example_com_widget", "-evil", "-example_com_gadget")
			b.expectNothingEvil()
		})
	}
}

// A service that starts takes the bus at its word: what it reads first may be of the very version that the API server has.
func TestNothingIsMadeLiveOfWhatLooksLikeTheNewestVersion(t *testing.T) {
	for what, f := range forgeries() {
		if f.like != "" || f.kind == kinds.PolicyDocuments() || f.kind == kinds.Definitions() {
			continue
		}
		t.Run(what, func(t *testing.T) {
			b, r := declared(t)
			before := b.given()
			r.Stop()
			f.publish(b, 0)
			asked := b.answers(f)
			b.serve(ordinary(), unprivileged)
			testbed.Eventually(t, soon, func() error {
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
			f.touch(b)
			b.applyModule("honest", "demo", dsl("honest"))
			b.awaitModule("honest", "Merged=True/Merged")
			b.awaitTypes("honest", "folder", "tenant", "example_com_widget", "-evil")
			b.expectNothingEvil()
		})
	}
}
