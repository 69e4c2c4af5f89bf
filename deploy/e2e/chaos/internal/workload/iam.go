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

// ProtectedResourceResource returns the resource of kind ProtectedResource.
func ProtectedResourceResource() schema.GroupVersionResource {
	return iamResource("protectedresources")
}

// IAMRoleResource returns the resource of kind Role of IAM.
func IAMRoleResource() schema.GroupVersionResource { return iamResource("roles") }

// PolicyBindingResource returns the resource of kind PolicyBinding.
func PolicyBindingResource() schema.GroupVersionResource { return iamResource("policybindings") }

// IAMGroupResource returns the resource of kind Group.
func IAMGroupResource() schema.GroupVersionResource { return iamResource("groups") }

// GroupMembershipResource returns the resource of kind GroupMembership.
func GroupMembershipResource() schema.GroupVersionResource { return iamResource("groupmemberships") }

// IAMUserResource returns the resource of kind User.
func IAMUserResource() schema.GroupVersionResource { return iamResource("users") }

// OrganizationResource returns the resource of kind Organization.
func OrganizationResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: ResourceGroup, Version: iamVersion, Resource: "organizations"}
}

// ProjectResource returns the resource of kind Project.
func ProjectResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: ResourceGroup, Version: iamVersion, Resource: "projects"}
}

// iamKinds returns the kinds of IAM, with its protected objects and their access.
func iamKinds() []ObjectKind {
	var kinds []ObjectKind
	for _, t := range AllTargets() {
		kinds = append(kinds, ObjectKind{
			Resource: ProtectedResourceResource(), Weight: 1, Draw: t.drawProtectedResource,
			Once: []*unstructured.Unstructured{t.protectedResource([]any{"get"})},
			Keep: t.Kind != "ConfigMap", // Without these, the IAM store and most parents would be deleted.
		})
	}
	return append(append(kinds, targetKinds()...), []ObjectKind{
		{Resource: OrganizationResource(), Weight: 3, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
			return drawEdition(r, newOrganization(drawNumbered(r, "org-", orgsOfIAM))), ""
		}, Once: []*unstructured.Unstructured{newOrganization("org-0"), newOrganization("org-1")}, Fixed: hasOtherEdition, Lingers: true},
		{Resource: ProjectResource(), Weight: 4, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
			org := drawNumbered(r, "org-", orgsOfIAM)
			return newProject(drawNumbered(r, "project-", projectsOfIAM), org), "of " + org
		}, Once: []*unstructured.Unstructured{newProject("project-0", "org-0"), newProject("project-1", "org-1")}, Lingers: true},
		{Resource: IAMUserResource(), Weight: 1, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
			return newUser(drawNumbered(r, "user-", subjectsOfIAM)), ""
		}, Once: []*unstructured.Unstructured{newUser("user-0"), newUser("user-1")}, Lingers: true},
		{Resource: IAMGroupResource(), Weight: 1, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
			return newObject(IAMGroupResource(), "Group", drawOne(r, NamespaceNames()...), drawNumbered(r, "group-", groupsOfIAM)), ""
		}, Lingers: true},
		{Resource: GroupMembershipResource(), Weight: 2, Draw: func(r *rand.Rand) (*unstructured.Unstructured, string) {
			user, group := drawNumbered(r, "user-", subjectsOfIAM),
				withField(nameReference(drawNumbered(r, "group-", groupsOfIAM)), "namespace", drawOne(r, NamespaceNames()...))
			spec := map[string]any{"userRef": nameReference(user), "groupRef": group}
			o := newObjectWithSpec(GroupMembershipResource(), "GroupMembership", drawOne(r, NamespaceNames()...),
				drawNumbered(r, "member-", membersOfGroup), spec)
			return o, fmt.Sprintf("%s in %s/%s", user, group["namespace"], group["name"])
		}},
		{Resource: IAMRoleResource(), Weight: 2, Draw: drawIAMRole, Once: initialIAMRoles(), Lingers: true},
		{Resource: PolicyBindingResource(), Weight: 8, Draw: drawPolicyBinding, Fixed: changesReference},
	}...)
}

func newUser(name string) *unstructured.Unstructured {
	return newObjectWithSpec(IAMUserResource(), "User", "", name, map[string]any{"email": name + "@example.com"})
}

func newOrganization(name string) *unstructured.Unstructured {
	return newObjectWithSpec(OrganizationResource(), "Organization", "", name, map[string]any{"type": "Standard"})
}

func newProject(name, of string) *unstructured.Unstructured {
	return newObjectWithSpec(ProjectResource(), "Project", "", name, map[string]any{"ownerRef": kindReference("Organization", of)})
}

func newObjectWithSpec(gvr schema.GroupVersionResource, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	o := newObject(gvr, kind, namespace, name)
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

// AllVerbs returns the verbs of all permissions.
func AllVerbs() []string { return []string{"get", "list", "update"} }

// drawVerbs draws some verbs. The first one is always among them.
func drawVerbs(r *rand.Rand) []any {
	all := []any{AllVerbs()[0]}
	for _, verb := range AllVerbs()[1:] {
		if r.IntN(3) > 0 {
			all = append(all, verb)
		}
	}
	return all
}

// initialIAMRoles returns roles with a permission on every target, so that each of their holders has some access.
func initialIAMRoles() (all []*unstructured.Unstructured) {
	var permissions []any
	for _, t := range AllTargets() {
		permissions = append(permissions, fmt.Sprintf("%s/%s.%s", t.Group, t.Resource.Resource, AllVerbs()[0]))
	}
	for _, namespace := range NamespaceNames() {
		for i := range rolesOfIAM {
			spec := map[string]any{"launchStage": "Beta", "includedPermissions": permissions}
			all = append(all, newObjectWithSpec(IAMRoleResource(), "Role", namespace, fmt.Sprint("access-", i), spec))
		}
	}
	return all
}

// drawIAMRole draws a role with some permissions and perhaps an inherited role. Cycles occur.
func drawIAMRole(r *rand.Rand) (*unstructured.Unstructured, string) {
	permissions, inherited := []any{}, []any{}
	for _, t := range AllTargets() {
		for _, verb := range drawVerbs(r) {
			if r.IntN(2) == 0 {
				permissions = append(permissions, fmt.Sprintf("%s/%s.%s", t.Group, t.Resource.Resource, verb))
			}
		}
	}
	if r.IntN(2) == 0 {
		inherited = append(inherited, withField(nameReference(drawNumbered(r, "access-", rolesOfIAM)), "namespace", drawOne(r, NamespaceNames()...)))
	}
	spec := map[string]any{"launchStage": "Beta", "includedPermissions": permissions, "inheritedRoles": inherited}
	o := newObjectWithSpec(IAMRoleResource(), "Role", drawOne(r, NamespaceNames()...), drawNumbered(r, "access-", rolesOfIAM), spec)
	return o, fmt.Sprintf("%d permissions, inherits %v", len(permissions), inherited)
}

// drawPolicyBinding draws a binding of a role to users and groups, on a kind or an object. Its UIDs are empty; [Driver]
// fills in the present ones.
func drawPolicyBinding(r *rand.Rand) (*unstructured.Unstructured, string) {
	role := nameReference(drawNumbered(r, "access-", rolesOfIAM))
	if r.IntN(2) == 0 {
		role["namespace"] = drawOne(r, NamespaceNames()...)
	}
	var subjects []any
	for range 1 + r.IntN(2) {
		subjects = append(subjects, drawOne(r,
			withField(kindReference("User", drawNumbered(r, "user-", subjectsOfIAM)), "uid", ""),
			withField(withField(kindReference("Group", drawNumbered(r, "group-", groupsOfIAM)), "namespace", drawOne(r, NamespaceNames()...)), "uid", ""),
			kindReference("Group", TokenGroup),
		))
	}
	t := drawOne(r, AllTargets()...)
	on, what := map[string]any{"resourceKind": map[string]any{"apiGroup": t.Group, "kind": t.Kind}}, "all"
	if r.IntN(3) > 0 {
		namespace, name := t.drawName(r)
		ref := withField(withField(kindReference(t.Kind, name), "apiGroup", t.Group), "uid", "")
		if on, what = map[string]any{"resourceRef": ref}, name; t.Namespaced {
			ref["namespace"], what = namespace, namespace+"/"+name
		}
	}
	spec := map[string]any{"roleRef": role, "subjects": subjects, "resourceSelector": on}
	o := newObjectWithSpec(PolicyBindingResource(), "PolicyBinding", drawOne(r, NamespaceNames()...), drawNumbered(r, "grant-", bindingsOfIAM), spec)
	return o, fmt.Sprintf("%s on %s %s for %v", role["name"], what, t.Kind, subjects)
}

// changesReference reports whether a change needs a new PolicyBinding. A target that is an object always does, because
// another object may have its name now.
func changesReference(before, after *unstructured.Unstructured) bool {
	for _, field := range []string{"roleRef", "resourceSelector"} {
		was, _, _ := unstructured.NestedMap(before.Object, "spec", field)
		is, _, _ := unstructured.NestedMap(after.Object, "spec", field)
		if is["resourceRef"] != nil || !reflect.DeepEqual(was, is) {
			return true
		}
	}
	return false
}
