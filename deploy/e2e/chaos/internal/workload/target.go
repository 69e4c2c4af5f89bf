package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GrantTarget is a kind on whose objects roles can be granted.
type GrantTarget struct {
	Resource schema.GroupVersionResource
	// Group is the API group by which IAM identifies the kind.
	Group, Kind string
	Namespaced  bool
	// Parents holds the parent kinds.
	Parents []string

	prefix string
	many   int
}

// OpenFGAType returns the OpenFGA type of the kind.
func (t GrantTarget) OpenFGAType() string { return t.Group + "/" + t.Kind }

// ObjectNames returns the names of all objects of the workload, as namespace/name.
func (t GrantTarget) ObjectNames() (names []string) {
	in := []string{""}
	if t.Namespaced {
		in = NamespaceNames()
	}
	for _, namespace := range in {
		for i := range t.many {
			names = append(names, fmt.Sprintf("%s/%s%d", namespace, t.prefix, i))
		}
	}
	return names
}

// AllTargets returns kinds of IAM, and other kinds that are watched because they are registered.
func AllTargets() []GrantTarget {
	return []GrantTarget{
		{Resource: OrganizationResource(), Group: ResourceGroup, Kind: "Organization", prefix: "org-", many: orgsOfIAM},
		{Resource: ProjectResource(), Group: ResourceGroup, Kind: "Project", Parents: []string{"Organization"}, prefix: "project-", many: projectsOfIAM},
		{
			Resource: schema.GroupVersionResource{Group: DefinitionGroup, Version: "v1", Resource: "gears"}, Group: DefinitionGroup, Kind: "gear",
			Parents: []string{"Project"}, prefix: "gear-", many: 3,
		},
		{
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Group: "core.miloapis.com", Kind: "ConfigMap", Namespaced: true,
			Parents: []string{"Project", "gear"}, prefix: "map-", many: 3,
		},
	}
}

// TargetOf returns the target of a kind.
func TargetOf(kind string) (GrantTarget, bool) {
	for _, t := range AllTargets() {
		if t.Kind == kind {
			return t, true
		}
	}
	return GrantTarget{}, false
}

// drawName draws the name of an object.
func (t GrantTarget) drawName(r *rand.Rand) (namespace, name string) {
	if t.Namespaced {
		namespace = drawOne(r, NamespaceNames()...)
	}
	return namespace, drawNumbered(r, t.prefix, t.many)
}

// targetKinds returns the targets outside of IAM, with the role that allows the watcher to read them.
func targetKinds() []ObjectKind {
	clusterRoles := rbacv1.SchemeGroupVersion.WithResource("clusterroles")
	rights := newObject(clusterRoles, "ClusterRole", "", "entail-targets")
	rights.SetLabels(map[string]string{"entail.dev/aggregate-to-targets": "true"})
	var rules []any
	var kinds []ObjectKind
	for _, t := range AllTargets() {
		if t.Group == ResourceGroup {
			continue
		}
		rules = append(rules, map[string]any{
			"apiGroups": []any{t.Resource.Group}, "resources": []any{t.Resource.Resource}, "verbs": []any{"get", "list", "watch"},
		})
		kinds = append(kinds, ObjectKind{Resource: t.Resource, Weight: 8, Draw: t.drawObject, Fixed: hasOtherEdition, Lingers: true})
	}
	rights.Object["rules"] = rules
	return append(kinds, ObjectKind{Resource: clusterRoles, Once: []*unstructured.Unstructured{rights}})
}

// edition is an annotation that distinguishes successive objects of one name.
const edition = "chaos.example/edition"

// drawObject draws an object with an owner of a parent kind, or without an owner.
func (t GrantTarget) drawObject(r *rand.Rand) (*unstructured.Unstructured, string) {
	namespace, name := t.drawName(r)
	o, summary := newObject(t.Resource, t.Kind, namespace, name), "nobody's"
	drawEdition(r, o)
	if r.IntN(4) > 0 {
		parent, _ := TargetOf(drawOne(r, t.Parents...))
		_, owner := parent.drawName(r)
		ref := withField(withField(kindReference(parent.Kind, owner), "apiVersion", parent.Resource.GroupVersion().String()), "uid", "")
		_ = unstructured.SetNestedSlice(o.Object, []any{ref}, "metadata", "ownerReferences")
		summary = "of " + owner
	}
	return o, summary
}

// drawEdition draws the edition of an object.
func drawEdition(r *rand.Rand, o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetAnnotations(map[string]string{edition: drawNumbered(r, "", 2)})
	return o
}

// hasOtherEdition reports whether the change recreates the object under its name.
func hasOtherEdition(before, after *unstructured.Unstructured) bool {
	return before.GetAnnotations()[edition] != after.GetAnnotations()[edition]
}

// drawProtectedResource draws a ProtectedResource for the kind with some verbs.
func (t GrantTarget) drawProtectedResource(r *rand.Rand) (*unstructured.Unstructured, string) {
	has := drawVerbs(r)
	return t.protectedResource(has), fmt.Sprint(has)
}

// protectedResource returns a ProtectedResource that registers the kind with its parents.
func (t GrantTarget) protectedResource(verbs []any) *unstructured.Unstructured {
	singular := strings.ToLower(t.Kind)
	spec := map[string]any{
		"serviceRef": nameReference(t.Group), "kind": t.Kind, "singular": singular, "plural": t.Resource.Resource, "permissions": verbs,
	}
	var parents []any
	for _, kind := range t.Parents {
		parent, _ := TargetOf(kind)
		parents = append(parents, map[string]any{"apiGroup": parent.Group, "kind": kind})
	}
	if len(parents) > 0 {
		spec["parentResources"] = parents
	}
	return newObjectWithSpec(ProtectedResourceResource(), "ProtectedResource", "", singular, spec)
}
