package checker

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/deploy/chaos/internal/workload"
)

// declaredAccess are objects by which alice and the group staff may get the project web. Each has its name as its UID.
func declaredAccess() map[schema.GroupVersionResource]unstructured.Unstructured {
	const org, project = "Organization", "Project"
	ref := func(kind, name string) map[string]any { return map[string]any{"kind": kind, "name": name, "uid": name} }
	all := map[schema.GroupVersionResource]unstructured.Unstructured{
		workload.ProtectedResources(): object("ProtectedResource", "", "p", map[string]any{"spec": map[string]any{
			"serviceRef": map[string]any{"name": workload.ResourceGroup}, "kind": project, "plural": "projects", "permissions": []any{"get"},
		}}),
		workload.Projects(): object(project, "", "web", map[string]any{"spec": map[string]any{"ownerRef": ref(org, "acme")}}),
		workload.IAMUsers(): object("User", "", "user-1", map[string]any{}),
		workload.Groups():   object("Group", "team-0", "staff", map[string]any{}),
		workload.IAMRoles(): object("Role", "team-0", "viewer", map[string]any{"spec": map[string]any{
			"includedPermissions": []any{workload.ResourceGroup + "/projects.get"}, "inheritedRoles": []any{map[string]any{"name": "viewer"}},
		}}),
		workload.GroupMemberships(): object("GroupMembership", "team-0", "member", map[string]any{
			"spec":   map[string]any{"userRef": map[string]any{"name": "user-1"}, "groupRef": map[string]any{"name": "staff", "namespace": "team-0"}},
			"status": map[string]any{"user": map[string]any{"name": "user-1", "uid": "user-1"}},
		}),
		workload.PolicyBindings(): object("PolicyBinding", "team-0", "grant", map[string]any{"spec": map[string]any{
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

// relations are how often each relation is wanted.
func relations(objects map[schema.GroupVersionResource]unstructured.Unstructured) string {
	s := &Snapshot{byKind: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
	for gvr, o := range objects {
		s.byKind[gvr] = append(s.byKind[gvr], o)
	}
	var all []string
	for text := range newAccess(s).tuples {
		_, rest, _ := strings.Cut(text, "#")
		relation, _, _ := strings.Cut(rest, "@")
		all = append(all, relation)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestAccessFollowsFromObjectsAndGoesWithEach(t *testing.T) {
	permission := hashOf(workload.ResourceGroup + "/projects.get")[:12]
	whole := permission + " b member r u u u"
	if got := relations(declaredAccess()); got != whole {
		t.Fatalf("wanted is %q, want %q", got, whole)
	}
	for kind, want := range map[schema.GroupVersionResource]string{
		workload.ProtectedResources(): "member",
		workload.Projects():           permission + " member",
		workload.IAMUsers():           permission + " b r u u",
		workload.Groups():             permission + " b r u u",
		workload.IAMRoles():           "member",
		workload.GroupMemberships():   permission + " b r u u u",
		workload.PolicyBindings():     permission + " member",
	} {
		gone, anew := declaredAccess(), declaredAccess()
		if delete(gone, kind); relations(gone) != want {
			t.Errorf("without %s wanted is %q, want %q", kind.Resource, relations(gone), want)
		}
		o := anew[kind]
		o.SetUID("another")
		if byName := slices.Contains([]schema.GroupVersionResource{
			workload.ProtectedResources(), workload.IAMRoles(), workload.GroupMemberships(), workload.PolicyBindings(),
		}, kind); !byName && len(relations(anew)) >= len(whole) {
			t.Errorf("with another of the name of %s wanted is %q", kind.Resource, relations(anew))
		}
	}
}

func TestOnlyWhoIsGivenSomethingMayHaveAnything(t *testing.T) {
	p := newPossible()
	for gvr, o := range declaredAccess() {
		p.add(gvr.Resource, o)
	}
	for user, want := range map[string]bool{iamUser + "user-1": true, iamUser + "user-2": false, iamPrefix + "InternalUser:*": true} {
		if got := p.declared(workload.IAMStore, Tuple{iamPrefix + "RoleBinding:x", "u", user}); got != want {
			t.Errorf("%s may have something: %t", user, got)
		}
	}
}
