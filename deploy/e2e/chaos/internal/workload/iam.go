package workload

import (
	"fmt"
	"math/rand/v2"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// API groups of IAM, and the numbers of its objects.
const (
	IAMGroup       = "iam.miloapis.com"
	ResourceGroup  = "resourcemanager.miloapis.com"
	iamVersion     = "v1alpha1"
	subjectsOfIAM  = 8
	groupsOfIAM    = 3
	orgsOfIAM      = 2
	projectsOfIAM  = 3
	rolesOfIAM     = 4
	bindingsOfIAM  = 8
	membersOfGroup = 8
)

// IAMStore is the Store with the model and the tuples of IAM.
const IAMStore = "iam"

func iamResource(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: IAMGroup, Version: iamVersion, Resource: resource}
}

// ProtectedResources returns the resource of kind ProtectedResource.
func ProtectedResources() schema.GroupVersionResource { return iamResource("protectedresources") }

// IAMRoles returns the resource of kind Role of IAM.
func IAMRoles() schema.GroupVersionResource { return iamResource("roles") }

// PolicyBindings returns the resource of kind PolicyBinding.
func PolicyBindings() schema.GroupVersionResource { return iamResource("policybindings") }

// Groups returns the resource of kind Group.
func Groups() schema.GroupVersionResource { return iamResource("groups") }

// GroupMemberships returns the resource of kind GroupMembership.
func GroupMemberships() schema.GroupVersionResource { return iamResource("groupmemberships") }

// IAMUsers returns the resource of kind User.
func IAMUsers() schema.GroupVersionResource { return iamResource("users") }

// Organizations returns the resource of kind Organization.
func Organizations() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: ResourceGroup, Version: iamVersion, Resource: "organizations"}
}

// Projects returns the resource of kind Project.
func Projects() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: ResourceGroup, Version: iamVersion, Resource: "projects"}
}

// iam returns the kinds of IAM, with its protected objects and their access.
func iam() []Kind {
	var kinds []Kind
	for _, t := range Targets() {
		kinds = append(kinds, Kind{
			Resource: ProtectedResources(), Weight: 1, Draw: t.drawProtectedResource, Once: []*unstructured.Unstructured{t.protectedResource([]any{"get"})},
			Keep: t.Kind != "ConfigMap", // Without these, the IAM store and most parents would be deleted.
		})
	}
	return append(append(kinds, targetKinds()...), []Kind{
		{Resource: Organizations(), Weight: 3, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
			return editionOf(r, organization(numbered(r, "org-", orgsOfIAM))), ""
		}, Once: []*unstructured.Unstructured{organization("org-0"), organization("org-1")}, Fixed: anotherEdition, Lingers: true},
		{Resource: Projects(), Weight: 4, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
			org := numbered(r, "org-", orgsOfIAM)
			return project(numbered(r, "project-", projectsOfIAM), org), "of " + org
		}, Once: []*unstructured.Unstructured{project("project-0", "org-0"), project("project-1", "org-1")}, Lingers: true},
		{Resource: IAMUsers(), Weight: 1, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
			return user(numbered(r, "user-", subjectsOfIAM)), ""
		}, Once: []*unstructured.Unstructured{user("user-0"), user("user-1")}, Lingers: true},
		{Resource: Groups(), Weight: 1, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
			return object(Groups(), "Group", drawOne(r, Namespaces()...), numbered(r, "group-", groupsOfIAM)), ""
		}, Lingers: true},
		{Resource: GroupMemberships(), Weight: 2, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
			user, group := numbered(r, "user-", subjectsOfIAM), with(named(numbered(r, "group-", groupsOfIAM)), "namespace", drawOne(r, Namespaces()...))
			spec := map[string]any{"userRef": named(user), "groupRef": group}
			o := specified(GroupMemberships(), "GroupMembership", drawOne(r, Namespaces()...), numbered(r, "member-", membersOfGroup), spec)
			return o, fmt.Sprintf("%s in %s/%s", user, group["namespace"], group["name"])
		}},
		{Resource: IAMRoles(), Weight: 2, Draw: drawIAMRole, Once: firstRoles(), Lingers: true},
		{Resource: PolicyBindings(), Weight: 8, Draw: drawPolicyBinding, Fixed: otherReference},
	}...)
}

func user(name string) *unstructured.Unstructured {
	return specified(IAMUsers(), "User", "", name, map[string]any{"email": name + "@example.com"})
}

func organization(name string) *unstructured.Unstructured {
	return specified(Organizations(), "Organization", "", name, map[string]any{"type": "Standard"})
}

func project(name, of string) *unstructured.Unstructured {
	return specified(Projects(), "Project", "", name, map[string]any{"ownerRef": ofKind("Organization", of)})
}

func specified(gvr schema.GroupVersionResource, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	o := object(gvr, kind, namespace, name)
	o.Object["spec"] = spec
	return o
}

// TokenGroup is a group that only the authenticator reports.
const TokenGroup = "oidc:staff"

// IAMUserNames returns the names of all Users of the workload.
func IAMUserNames() (all []string) {
	for i := range subjectsOfIAM {
		all = append(all, fmt.Sprint("user-", i))
	}
	return all
}

// Verbs returns the verbs of all permissions.
func Verbs() []string { return []string{"get", "list", "update"} }

// verbs draws some verbs. The first one is always among them.
func verbs(r *rand.Rand) []any {
	all := []any{Verbs()[0]}
	for _, verb := range Verbs()[1:] {
		if r.IntN(3) > 0 {
			all = append(all, verb)
		}
	}
	return all
}

// firstRoles returns roles with a permission on every target, so that each of their holders has some access.
func firstRoles() (all []*unstructured.Unstructured) {
	var permissions []any
	for _, t := range Targets() {
		permissions = append(permissions, fmt.Sprintf("%s/%s.%s", t.Group, t.Resource.Resource, Verbs()[0]))
	}
	for _, namespace := range Namespaces() {
		for i := range rolesOfIAM {
			spec := map[string]any{"launchStage": "Beta", "includedPermissions": permissions}
			all = append(all, specified(IAMRoles(), "Role", namespace, fmt.Sprint("access-", i), spec))
		}
	}
	return all
}

// drawIAMRole draws a role with some permissions and perhaps an inherited role. Cycles occur.
func drawIAMRole(r *rand.Rand) (*unstructured.Unstructured, string) {
	permissions, inherited := []any{}, []any{}
	for _, t := range Targets() {
		for _, verb := range verbs(r) {
			if r.IntN(2) == 0 {
				permissions = append(permissions, fmt.Sprintf("%s/%s.%s", t.Group, t.Resource.Resource, verb))
			}
		}
	}
	if r.IntN(2) == 0 {
		inherited = append(inherited, with(named(numbered(r, "access-", rolesOfIAM)), "namespace", drawOne(r, Namespaces()...)))
	}
	spec := map[string]any{"launchStage": "Beta", "includedPermissions": permissions, "inheritedRoles": inherited}
	o := specified(IAMRoles(), "Role", drawOne(r, Namespaces()...), numbered(r, "access-", rolesOfIAM), spec)
	return o, fmt.Sprintf("%d permissions, inherits %v", len(permissions), inherited)
}

// drawPolicyBinding draws a binding of a role to users and groups, on a kind or an object. Its UIDs are empty; [Driver]
// fills in the present ones.
func drawPolicyBinding(r *rand.Rand) (*unstructured.Unstructured, string) {
	role := named(numbered(r, "access-", rolesOfIAM))
	if r.IntN(2) == 0 {
		role["namespace"] = drawOne(r, Namespaces()...)
	}
	var subjects []any
	for range 1 + r.IntN(2) {
		subjects = append(subjects, drawOne(r,
			with(ofKind("User", numbered(r, "user-", subjectsOfIAM)), "uid", ""),
			with(with(ofKind("Group", numbered(r, "group-", groupsOfIAM)), "namespace", drawOne(r, Namespaces()...)), "uid", ""),
			ofKind("Group", TokenGroup),
		))
	}
	t := drawOne(r, Targets()...)
	on, what := map[string]any{"resourceKind": map[string]any{"apiGroup": t.Group, "kind": t.Kind}}, "all"
	if r.IntN(3) > 0 {
		namespace, name := t.drawName(r)
		ref := with(with(ofKind(t.Kind, name), "apiGroup", t.Group), "uid", "")
		if on, what = map[string]any{"resourceRef": ref}, name; t.Namespaced {
			ref["namespace"], what = namespace, namespace+"/"+name
		}
	}
	spec := map[string]any{"roleRef": role, "subjects": subjects, "resourceSelector": on}
	o := specified(PolicyBindings(), "PolicyBinding", drawOne(r, Namespaces()...), numbered(r, "grant-", bindingsOfIAM), spec)
	return o, fmt.Sprintf("%s on %s %s for %v", role["name"], what, t.Kind, subjects)
}

// otherReference reports whether a change needs a new PolicyBinding. A target that is an object always does, because
// another object may have its name now.
func otherReference(before, after *unstructured.Unstructured) bool {
	for _, field := range []string{"roleRef", "resourceSelector"} {
		was, _, _ := unstructured.NestedMap(before.Object, "spec", field)
		is, _, _ := unstructured.NestedMap(after.Object, "spec", field)
		if is["resourceRef"] != nil || !reflect.DeepEqual(was, is) {
			return true
		}
	}
	return false
}
