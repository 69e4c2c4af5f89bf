package checker

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

func object(kind, namespace, name string, content map[string]any) unstructured.Unstructured {
	o := unstructured.Unstructured{Object: content}
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func rule(name, parent, child string) unstructured.Unstructured {
	return object("ImpliedRoles", "team-0", name, map[string]any{"spec": map[string]any{
		"inference_rule": map[string]any{"parent_role": parent, "child_role": child},
	}})
}

func TestExpectedRolesFollowChainsAndCycles(t *testing.T) {
	all := impliedRoleRules{}
	for _, r := range []unstructured.Unstructured{rule("1", "a", "b"), rule("2", "b", "c"), rule("3", "c", "a"), rule("4", "c", "d")} {
		all.addRule(r)
	}
	for role, want := range map[string]string{"a": "b c d", "b": "a c d", "d": "", "x": ""} {
		if got := strings.Join(all.impliedRoles("team-0", role), " "); got != want {
			t.Errorf("%s implies %q, want %q", role, got, want)
		}
	}
	if got := all.impliedRoles("team-1", "a"); len(got) > 0 {
		t.Errorf("in another namespace a implies %v", got)
	}
}

func store(text string, tuples ...any) unstructured.Unstructured {
	return object("Store", "", "store-0", map[string]any{"spec": map[string]any{"coreModule": text, "tuples": tuples}})
}

func tuple(object, relation, user string) any {
	return map[string]any{"object": object, "relation": relation, "user": user}
}

const text = "module core\ntype user\ntype doc\n  relations\n    define editor: [user]\n    define viewer: [user] or editor\n"

func TestExpectedModelOmitsBrokenModule(t *testing.T) {
	s := &ObjectSnapshot{byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
	part := func(name, text string) unstructured.Unstructured {
		return object("AuthorizationModel", "", name, map[string]any{"spec": map[string]any{
			"storeRef": map[string]any{"name": "store-0"}, "model": text, "tuples": []any{tuple(name+":1", "viewer", "user:1")},
		}})
	}
	s.byKind[workload.AuthorizationModelResource()] = []unstructured.Unstructured{
		part("good", "module good\ntype good\n  relations\n    define viewer: [user]\n"),
		part("bad", "module bad\ntype bad\n  relations\n    define viewer: [nothing]\n"),
		part("unreadable", "module unreadable\ntype unreadable\n  relations\n    define viewer [user]\n"),
	}
	d, err := newDeclaredStore(s, store(text, tuple("doc:1", "editor", "user:1"), tuple("doc:1", "unknown", "user:1"), tuple("good:1", "viewer", "role:1")))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.broken) != 2 || d.broken["good"] != nil {
		t.Errorf("broken are %v", d.broken)
	}
	if err := compareMaps("tuples", d.tuples, map[string]bool{"doc:1#editor@user:1": true, "good:1#viewer@user:1": true}); err != nil {
		t.Error(err)
	}
	if !d.invalid["store-0"] || d.invalid["good"] || !d.invalid["bad"] {
		t.Errorf("invalid are %v", d.invalid)
	}
}

func TestExpectedModelKeepsLastTextOfBrokenModule(t *testing.T) {
	of := store(text)
	of.SetUID("this")
	for uid, want := range map[string]map[string]bool{"this": {"part:1#viewer@user:1": true}, "another": {}} {
		m := object("AuthorizationModel", "", "part", map[string]any{
			"spec": map[string]any{
				"storeRef": map[string]any{"name": "store-0"}, "model": "module part\ntype part\n  relations\n    define viewer [user]\n",
				"tuples": []any{tuple("part:1", "viewer", "user:1"), tuple("part:2", "viewer", "user:1")},
			},
			"status": map[string]any{
				"managedTuples": []any{tuple("part:1", "viewer", "user:1")},
				"live":          map[string]any{"storeUID": uid, "model": "module part\ntype part\n  relations\n    define viewer: [user]\n"},
			},
		})
		d, err := newDeclaredStore(&ObjectSnapshot{byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{workload.AuthorizationModelResource(): {m}}}, of)
		if err != nil || d.broken["part"] == nil {
			t.Fatalf("broken are %v: %v", d.broken, err)
		}
		if err := compareMaps("tuples", d.tuples, want); err != nil {
			t.Errorf("in %s: %v", uid, err)
		}
	}
}

func TestModelsAreComparedByMeaning(t *testing.T) {
	model := func(text string) map[string]string {
		m, err := compileModules(Module{Name: "core", Text: text})
		if err != nil {
			t.Fatal(err)
		}
		return rewritesOf(m)
	}
	if err := compareMaps("a model", model(text), model("module other\n\ntype user\n"+text[len("module core\ntype user\n"):])); err != nil {
		t.Error(err)
	}
	for name, other := range map[string]string{
		"a user type":    strings.Replace(text, "editor: [user]", "editor: [user, user:*]", 1),
		"a relation":     text + "    define auditor: [user]\n",
		"a type":         text + "type other\n",
		"a right less":   strings.Replace(text, " or editor", "", 1),
		"another module": strings.ReplaceAll(text, "editor", "writer"),
	} {
		if compareMaps("a model", model(other), model(text)) == nil {
			t.Errorf("%s makes no difference", name)
		}
	}
}

// A grant that was declared since the last rest is possible; all others are not. OpenFGA itself decides each state
// here, and no grant of a state may count as impossible.
func TestDeclaredGrantsArePossible(t *testing.T) {
	w := workload.New(rand.New(rand.NewPCG(7, 7)))
	p, now := newAllowedSince(), map[string]unstructured.Unstructured{}
	granted := 0
	for range 120 {
		o := w.NextOperation()
		if o.Verb == workload.Delete {
			delete(now, o.Key())
			continue
		}
		p.addState(o.Resource.Resource, *o.Object)
		now[o.Key()] = *o.Object
		s := &ObjectSnapshot{byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
		for key, object := range now {
			for _, k := range workload.AllKinds() {
				if strings.HasPrefix(key, k.Resource.Resource+"/") {
					s.byKind[k.Resource] = append(s.byKind[k.Resource], object)
				}
			}
		}
		for _, store := range s.byKind[workload.StoreResource()] {
			d, err := newDeclaredStore(s, store)
			if err != nil {
				t.Fatal(err)
			}
			for text := range d.tuples {
				object, rest, _ := strings.Cut(text, "#")
				relation, user, _ := strings.Cut(rest, "@")
				granted++
				if q := (Tuple{object, relation, user}); !p.isDeclared(store.GetName(), q) || !p.mayAllow(store.GetName(), q) {
					t.Fatalf("%s is granted in %s and said to be impossible", q, store.GetName())
				}
				of, _, _ := strings.Cut(object, ":")
				if relation == "editor" && strings.Contains(rewritesOf(d.model)[of+"#viewer"], "editor") && !p.mayAllow(store.GetName(), Tuple{object, "viewer", user}) {
					t.Fatalf("viewer of %s follows in %s and is said to be impossible", object, store.GetName())
				}
			}
		}
		for _, b := range s.byKind[workload.RoleBindingResource()] {
			for _, who := range subjectNames(b) {
				for _, role := range append(collectRules(s).impliedRoles(b.GetNamespace(), textField(b, "roleRef", "name")), textField(b, "roleRef", "name")) {
					if !p.mayHoldRole(b.GetNamespace(), who, role) {
						t.Fatalf("%s has %s in %s and is said not to", who, role, b.GetNamespace())
					}
				}
			}
		}
	}
	if granted == 0 {
		t.Fatal("nothing was ever granted")
	}
	if p.mayAllow("store-0", Tuple{"doc:9", "viewer", "user:9"}) || p.mayHoldRole("team-0", "nobody", "role-0") {
		t.Error("what nobody declared is said to be possible")
	}
}

func TestCountersCountWritesOnly(t *testing.T) {
	w := WriteCounts{}
	w.addSamples(strings.NewReader(`# TYPE apiserver_request_total counter
apiserver_request_total{code="200",group="core.platform-mesh.io",resource="stores",subresource="status",verb="APPLY"} 3
apiserver_request_total{code="409",group="core.platform-mesh.io",resource="stores",subresource="status",verb="APPLY"} 7
apiserver_request_total{code="403",group="core.platform-mesh.io",resource="stores",subresource="",verb="APPLY"} 2
apiserver_request_total{code="200",group="",resource="stores",subresource="",verb="GET"} 9
apiserver_request_total{code="200",group="coordination.k8s.io",resource="leases",subresource="",verb="PUT"} 9
apiserver_request_total{code="201",group="authorization.k8s.io",resource="subjectaccessreviews",subresource="",verb="POST"} 9
`), "apiserver_request_total", kubeWriteName)
	if len(w) != 2 || w["APPLY stores/status 200"] != 3 || w["APPLY stores 403"] != 2 {
		t.Errorf("counted: %v", w)
	}
	if err := w.WritesSinceErr(WriteCounts{"APPLY stores/status 200": 2, "APPLY stores 403": 2}); err == nil || err.Error() != "APPLY stores/status 200 ×1" {
		t.Errorf("one more is told as %v", err)
	}
	if err := w.WritesSinceErr(w); err != nil {
		t.Errorf("no more is told as %v", err)
	}
}

func TestDeletingStoreMayKeepContent(t *testing.T) {
	m := &AccessMonitor{possible: newAllowedSince()}
	snapshot := func(o unstructured.Unstructured) *ObjectSnapshot {
		return &ObjectSnapshot{byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{workload.StoreResource(): {o}}}
	}
	q := Tuple{"doc:1", "viewer", "user:1"}
	m.NoteQuiescence(snapshot(store(text, tuple("doc:1", "editor", "user:1"))))
	other := store(strings.Replace(text, " or editor", "", 1))
	now := metav1.Now()
	other.SetDeletionTimestamp(&now)
	if m.NoteQuiescence(snapshot(other)); !m.possible.mayAllow("store-0", q) {
		t.Error("what a Store had is said to be impossible while it is being deleted")
	}
	other.SetDeletionTimestamp(nil)
	if m.NoteQuiescence(snapshot(other)); m.possible.mayAllow("store-0", q) {
		t.Error("what was revoked is said to be possible at the next rest")
	}
}

func TestQuiescenceRequiresClosedRecords(t *testing.T) {
	open := func(reason, message string) error {
		o := store(text)
		now := metav1.Now()
		o.SetDeletionTimestamp(&now)
		conditions := []any{map[string]any{"type": "TuplesSynced", "status": "False", "reason": reason, "message": message}}
		if err := unstructured.SetNestedSlice(o.Object, conditions, "status", "conditions"); err != nil {
			t.Fatal(err)
		}
		return checkRecords(t.Context(), &CheckedSystem{Snapshot: &ObjectSnapshot{
			byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{workload.StoreResource(): {o}},
		}})
	}
	if open("Syncing", "Tuples are being written by a.") == nil {
		t.Error("a Store that waits for its end may be written again, and nobody minds")
	}
	if err := errors.Join(open("Syncing", "Tuples are written when the store has a model again."), open("Synced", "")); err != nil {
		t.Error(err)
	}
}
