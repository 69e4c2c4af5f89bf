package checker

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// declaredAccess returns objects that let alice and the group staff get project web. Each has its name as its UID.
func declaredAccess() map[schema.GroupVersionResource]unstructured.Unstructured {
	const org, project = "Organization", "Project"
	ref := func(kind, name string) map[string]any { return map[string]any{"kind": kind, "name": name, "uid": name} }
	all := map[schema.GroupVersionResource]unstructured.Unstructured{
		workload.ProtectedResourceResource(): object("ProtectedResource", "", "p", map[string]any{"spec": map[string]any{
			"serviceRef": map[string]any{"name": workload.ResourceGroup}, "kind": project, "plural": "projects", "permissions": []any{"get"},
		}}),
		workload.ProjectResource():  object(project, "", "web", map[string]any{"spec": map[string]any{"ownerRef": ref(org, "acme")}}),
		workload.IAMUserResource():  object("User", "", "user-1", map[string]any{}),
		workload.IAMGroupResource(): object("Group", "team-0", "staff", map[string]any{}),
		workload.IAMRoleResource(): object("Role", "team-0", "viewer", map[string]any{"spec": map[string]any{
			"includedPermissions": []any{workload.ResourceGroup + "/projects.get"}, "inheritedRoles": []any{map[string]any{"name": "viewer"}},
		}}),
		workload.GroupMembershipResource(): object("GroupMembership", "team-0", "member", map[string]any{
			"spec":   map[string]any{"userRef": map[string]any{"name": "user-1"}, "groupRef": map[string]any{"name": "staff", "namespace": "team-0"}},
			"status": map[string]any{"user": map[string]any{"name": "user-1", "uid": "user-1"}},
		}),
		workload.PolicyBindingResource(): object("PolicyBinding", "team-0", "grant", map[string]any{"spec": map[string]any{
			"roleRef": map[string]any{"name": "viewer"},
			"subjects": []any{
				ref("User", "user-1"), map[string]any{"kind": "Group", "namespace": "team-0", "name": "staff", "uid": "staff"}, map[string]any{"kind": "Group", "name": "oidc:all"},
			},
			"resourceSelector": map[string]any{"resourceRef": map[string]any{"apiGroup": workload.ResourceGroup, "kind": project, "name": "web", "uid": "web"}},
		}}),
	}
	for gvr, o := range all {
		o.SetUID(types.UID(o.GetName()))
		all[gvr] = o
	}
	return all
}

// relations returns the relations of all wanted tuples, sorted.
func relations(objects map[schema.GroupVersionResource]unstructured.Unstructured) string {
	s := &ObjectSnapshot{byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
	for gvr, o := range objects {
		s.byKind[gvr] = append(s.byKind[gvr], o)
	}
	var all []string
	for text := range newDeclaredAccess(s).tuples {
		_, rest, _ := strings.Cut(text, "#")
		relation, _, _ := strings.Cut(rest, "@")
		all = append(all, relation)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestAccessRequiresEachObject(t *testing.T) {
	permission := sha256Hex(workload.ResourceGroup + "/projects.get")[:12]
	whole := permission + " b member r u u u"
	if got := relations(declaredAccess()); got != whole {
		t.Fatalf("wanted is %q, want %q", got, whole)
	}
	for kind, want := range map[schema.GroupVersionResource]string{
		workload.ProtectedResourceResource(): "member",
		workload.ProjectResource():           permission + " member",
		workload.IAMUserResource():           permission + " b r u u",
		workload.IAMGroupResource():          permission + " b r u u",
		workload.IAMRoleResource():           "member",
		workload.GroupMembershipResource():   permission + " b r u u u",
		workload.PolicyBindingResource():     permission + " member",
	} {
		gone, anew := declaredAccess(), declaredAccess()
		if delete(gone, kind); relations(gone) != want {
			t.Errorf("without %s wanted is %q, want %q", kind.Resource, relations(gone), want)
		}
		o := anew[kind]
		o.SetUID("another")
		if byName := slices.Contains([]schema.GroupVersionResource{
			workload.ProtectedResourceResource(), workload.IAMRoleResource(), workload.GroupMembershipResource(), workload.PolicyBindingResource(),
		}, kind); !byName && len(relations(anew)) >= len(whole) {
			t.Errorf("with another of the name of %s wanted is %q", kind.Resource, relations(anew))
		}
	}
}

func TestStoreMayHoldDeclaredTuplesOnly(t *testing.T) {
	p := newAllowedSince()
	for gvr, all := range related().byKind {
		for _, o := range all {
			p.addState(gvr.Resource, o)
		}
	}
	web, other := workload.ResourceGroup+"/Project:web", workload.ResourceGroup+"/Project:other"
	gear, grant := "chaos.example/gear:gear-0", iamPrefix+"RoleBinding:x/"+sha256Hex(web)
	for held, want := range map[Tuple]bool{
		{grant, "u", iamUser + "user-1"}: true, {grant, "u", iamUser + "user-2"}: false,
		{iamPrefix + "RoleBinding:x/" + sha256Hex(other), "u", iamUser + "user-1"}: false,
		{iamPrefix + "RoleBinding:x", "u", iamPrefix + "InternalUser:*"}:           true,
		{"x", "member", iamUser + "user-1"}:                                        true, {"x", "member", iamUser + "user-2"}: false,
		{web, "b", grant}: true, {other, "b", grant}: false,
		{gear, "p", web}: true, {gear, "p", other}: false, {web, "p", gear}: false,
	} {
		if got := p.isDeclared(workload.IAMStore, held); got != want {
			t.Errorf("%s may be there: %t", held, got)
		}
	}
}

// After random operations, every access that the present objects declare must be possible, and so must its tuples.
func TestDeclaredAccessIsPossible(t *testing.T) {
	w := workload.New(rand.New(rand.NewPCG(5, 5)))
	p, now := newAllowedSince(), map[string]unstructured.Unstructured{}
	take := func(o workload.Operation) {
		if delete(now, o.Key()); o.Verb == workload.Delete {
			return
		}
		object := identified(*o.Object)
		p.addState(o.Resource.Resource, object)
		now[o.Resource.String()+o.Key()] = object
	}
	for _, o := range workload.InitialOperations() {
		take(o)
	}
	yes := 0
	for range 150 {
		take(w.NextOperation())
		s := &ObjectSnapshot{byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
		for key, o := range now {
			for _, k := range workload.AllKinds() {
				if strings.HasPrefix(key, k.Resource.String()) {
					s.byKind[k.Resource] = append(s.byKind[k.Resource], o)
					break
				}
			}
		}
		a := newDeclaredAccess(s)
		for text := range a.tuples {
			object, rest, _ := strings.Cut(text, "#")
			relation, user, _ := strings.Cut(rest, "@")
			if !p.isDeclared(workload.IAMStore, Tuple{object, relation, user}) {
				t.Fatalf("%s is declared, and said to be impossible", text)
			}
		}
		for _, q := range allQuestions() {
			if !a.isAllowed(q) {
				continue
			}
			if yes++; !p.access.mayAllow(q) {
				t.Fatalf("%s is allowed, and said to be impossible", q)
			}
		}
	}
	if yes < 500 {
		t.Errorf("only %d were ever allowed", yes)
	}
	impossible := 0
	for _, q := range allQuestions() {
		if !p.access.mayAllow(q) {
			impossible++
		}
	}
	if impossible == 0 {
		t.Error("whatever is asked is said to be possible")
	}
}

// Access is impossible without any one of the objects that it needs, and also while that object is being deleted.
func TestAccessWithoutObjectIsImpossible(t *testing.T) {
	configMap, _ := workload.TargetOf("ConfigMap")
	project, _ := workload.TargetOf("Project")
	onMap := accessQuestion{questionSubject{User: "user-1"}, "get", questionResource{configMap.Group, configMap.Resource.Resource, "team-0", "map-0"}, configMap}
	onProject := accessQuestion{questionSubject{User: "user-1"}, "get", questionResource{project.Group, project.Resource.Resource, "", "web"}, project}
	direct := func() *ObjectSnapshot {
		s := &ObjectSnapshot{byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
		for gvr, o := range declaredAccess() {
			s.byKind[gvr] = append(s.byKind[gvr], o)
		}
		return s
	}
	onAll := func() *ObjectSnapshot {
		s := related()
		on := map[string]any{"resourceKind": map[string]any{"apiGroup": project.Group, "kind": project.Kind}}
		_ = unstructured.SetNestedMap(s.byKind[workload.PolicyBindingResource()][0].Object, on, "spec", "resourceSelector")
		return s
	}
	for name, c := range map[string]struct {
		declared func() *ObjectSnapshot
		q        accessQuestion
	}{"on the object": {direct, onProject}, "on what it belongs to": {related, onMap}, "on all of which it belongs to one": {onAll, onMap}} {
		for lacks := range c.declared().byKind {
			for _, going := range []bool{false, true} {
				p := newAllowedSince()
				for gvr, all := range c.declared().byKind {
					for _, o := range all {
						if gvr == lacks {
							o.SetDeletionTimestamp(new(metav1.Now()))
						}
						if gvr != lacks || going {
							p.addState(gvr.Resource, o)
						}
					}
				}
				byGroup := lacks == workload.IAMGroupResource() || lacks == workload.GroupMembershipResource()
				if got := p.access.mayAllow(c.q); got != byGroup {
					t.Errorf("%s, without %s (it is going: %t), it is possible: %t", name, lacks.Resource, going, got)
				}
			}
		}
	}
}

// identified returns a copy of an object whose UID is its name, and whose references use the names of other objects as
// UIDs.
func identified(o unstructured.Unstructured) unstructured.Unstructured {
	o = *o.DeepCopy()
	o.SetUID(types.UID(o.GetNamespace() + "/" + o.GetName()))
	name := func(ref map[string]any) {
		if namespace, _ := ref["namespace"].(string); ref["uid"] == "" {
			ref["uid"] = namespace + "/" + ref["name"].(string)
		}
	}
	subjects, _, _ := unstructured.NestedSlice(o.Object, "spec", "subjects")
	for _, s := range subjects {
		name(s.(map[string]any))
	}
	if len(subjects) > 0 {
		_ = unstructured.SetNestedSlice(o.Object, subjects, "spec", "subjects")
	}
	if ref, ok, _ := unstructured.NestedMap(o.Object, "spec", "resourceSelector", "resourceRef"); ok {
		name(ref)
		_ = unstructured.SetNestedMap(o.Object, ref, "spec", "resourceSelector", "resourceRef")
	}
	owners := o.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = types.UID("/" + owners[i].Name)
	}
	o.SetOwnerReferences(owners)
	if org := textField(o, "spec", "ownerRef", "name"); o.GetKind() == "Project" {
		_ = unstructured.SetNestedMap(o.Object, map[string]any{"name": org, "uid": "/" + org}, "status", "organization")
	}
	if user := textField(o, "spec", "userRef", "name"); o.GetKind() == "GroupMembership" {
		_ = unstructured.SetNestedMap(o.Object, map[string]any{"name": user, "uid": "/" + user}, "status", "user")
	}
	return o
}

// related returns a gear of project web, and a ConfigMap of the gear. Their kinds are registered with these parents.
func related() *ObjectSnapshot {
	s := &ObjectSnapshot{byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
	for gvr, o := range declaredAccess() {
		s.byKind[gvr] = append(s.byKind[gvr], o)
	}
	of := func(kind, name string) []any {
		t, _ := workload.TargetOf(kind)
		return []any{map[string]any{"apiVersion": t.Resource.GroupVersion().String(), "kind": kind, "name": name, "uid": name}}
	}
	for kind, o := range map[string]unstructured.Unstructured{
		"gear":      object("gear", "", "gear-0", map[string]any{"metadata": map[string]any{"ownerReferences": of("Project", "web")}}),
		"ConfigMap": object("ConfigMap", "team-0", "map-0", map[string]any{"metadata": map[string]any{"ownerReferences": of("gear", "gear-0")}}),
	} {
		t, _ := workload.TargetOf(kind)
		o.SetUID(types.UID(o.GetName()))
		s.byKind[t.Resource] = append(s.byKind[t.Resource], o)
		var parents []any
		for _, parent := range t.Parents {
			above, _ := workload.TargetOf(parent)
			parents = append(parents, map[string]any{"apiGroup": above.Group, "kind": parent})
		}
		protected := object("ProtectedResource", "", kind, map[string]any{"spec": map[string]any{
			"serviceRef": map[string]any{"name": t.Group}, "kind": kind, "plural": t.Resource.Resource, "permissions": []any{"get"}, "parentResources": parents,
		}})
		s.byKind[workload.ProtectedResourceResource()] = append(s.byKind[workload.ProtectedResourceResource()], protected)
	}
	role := s.byKind[workload.IAMRoleResource()][0]
	_ = unstructured.SetNestedStringSlice(role.Object, []string{"core.miloapis.com/configmaps.get"}, "spec", "includedPermissions")
	return s
}

func TestAccessIsInheritedFromParent(t *testing.T) {
	configMap, _ := workload.TargetOf("ConfigMap")
	gear, _ := workload.TargetOf("gear")
	on := func(verb, name string, who questionSubject) accessQuestion {
		return accessQuestion{who, verb, questionResource{configMap.Group, configMap.Resource.Resource, "team-0", name}, configMap}
	}
	user, staff, other := questionSubject{User: "user-1"}, questionSubject{User: "nobody", Groups: []string{"oidc:all"}}, questionSubject{User: "user-2", Groups: []string{"oidc:none"}}
	whole := newDeclaredAccess(related())
	for q, want := range map[*accessQuestion]bool{
		new(on("get", "map-0", user)): true, new(on("get", "map-0", staff)): true, new(on("get", "map-0", other)): false,
		new(on("list", "map-0", user)): false, new(on("get", "map-1", user)): false,
	} {
		if got := whole.isAllowed(*q); got != want {
			t.Errorf("%+v is answered with %t", *q, got)
		}
	}
	for name, change := range map[string]func(*ObjectSnapshot){
		"the gear is gone": func(s *ObjectSnapshot) { delete(s.byKind, gear.Resource) },
		"the gear is going": func(s *ObjectSnapshot) {
			s.byKind[gear.Resource][0].SetDeletionTimestamp(new(metav1.Now()))
		},
		"the gear is another":  func(s *ObjectSnapshot) { s.byKind[gear.Resource][0].SetUID("another") },
		"the gear is nobody's": func(s *ObjectSnapshot) { s.byKind[gear.Resource][0].SetOwnerReferences(nil) },
		"gears are no parents": func(s *ObjectSnapshot) {
			for _, p := range s.byKind[workload.ProtectedResourceResource()] {
				unstructured.RemoveNestedField(p.Object, "spec", "parentResources")
			}
		},
	} {
		s := related()
		if change(s); newDeclaredAccess(s).isAllowed(on("get", "map-0", user)) {
			t.Errorf("%s, and what was had by it is had", name)
		}
	}
}

// A webhook with a wrong answer is reported, and so is one without an answer.
func TestWrongWebhookAnswerIsReported(t *testing.T) {
	declares := newDeclaredAccess(related())
	for name, c := range map[string]struct {
		answer func(q accessQuestion) any
		found  string
	}{
		"it is right":        {func(q accessQuestion) any { return map[string]bool{"allowed": declares.isAllowed(q)} }, ""},
		"it lets nobody in":  {func(accessQuestion) any { return struct{}{} }, "wrong answers"},
		"it lets in anybody": {func(accessQuestion) any { return map[string]bool{"allowed": true} }, "wrong answers"},
		"it does not know":   {func(accessQuestion) any { return nil }, "503"},
	} {
		server := answering(t, func(w http.ResponseWriter, q accessQuestion) {
			if answer := c.answer(q); answer == nil {
				w.WriteHeader(http.StatusServiceUnavailable)
			} else if err := json.NewEncoder(w).Encode(answer); err != nil {
				t.Error(err)
			}
		})
		err := checkAnswers(t.Context(), &CheckedSystem{Snapshot: related(), Webhooks: func() []string { return []string{server} }})
		if (err == nil) != (c.found == "") || err != nil && !strings.Contains(err.Error(), c.found) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// answering starts a webhook, and returns its URL.
func answering(t *testing.T, answer func(w http.ResponseWriter, q accessQuestion)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q accessQuestion
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		for _, of := range workload.AllTargets() {
			if of.Resource.Resource == q.Resource.Resource {
				q.target = of
			}
		}
		answer(w, q)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
