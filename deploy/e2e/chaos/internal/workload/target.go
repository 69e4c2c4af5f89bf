package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Target is a kind on whose objects roles can be granted.
type Target struct {
	Resource schema.GroupVersionResource
	// Group is the API group by which IAM identifies the kind.
	Group, Kind string
	Namespaced  bool
	// Parents holds the parent kinds.
	Parents []string

	prefix string
	many   int
}

// Type returns the OpenFGA type of the kind.
func (t Target) Type() string { return t.Group + "/" + t.Kind }

// Names returns the names of all objects of the workload, as namespace/name.
func (t Target) Names() (names []string) {
	in := []string{""}
	if t.Namespaced {
		in = Namespaces()
	}
	for _, namespace := range in {
		for i := range t.many {
			names = append(names, fmt.Sprintf("%s/%s%d", namespace, t.prefix, i))
		}
	}
	return names
}

// Targets returns kinds of IAM, and other kinds that are watched because they are registered.
func Targets() []Target {
	return []Target{
		{Resource: Organizations(), Group: ResourceGroup, Kind: "Organization", prefix: "org-", many: orgsOfIAM},
		{Resource: Projects(), Group: ResourceGroup, Kind: "Project", Parents: []string{"Organization"}, prefix: "project-", many: projectsOfIAM},
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
func TargetOf(kind string) (Target, bool) {
	for _, t := range Targets() {
		if t.Kind == kind {
			return t, true
		}
	}
	return Target{}, false
}

// drawName draws the name of an object.
func (t Target) drawName(r *rand.Rand) (namespace, name string) {
	if t.Namespaced {
		namespace = drawOne(r, Namespaces()...)
	}
	return namespace, numbered(r, t.prefix, t.many)
}

// targetKinds returns the targets outside of IAM, with the role that allows the watcher to read them.
func targetKinds() []Kind {
	clusterRoles := rbacv1.SchemeGroupVersion.WithResource("clusterroles")
	rights := object(clusterRoles, "ClusterRole", "", "entail-targets")
	rights.SetLabels(map[string]string{"entail.dev/aggregate-to-targets": "true"})
	var rules []any
	var kinds []Kind
	for _, t := range Targets() {
		if t.Group == ResourceGroup {
			continue
		}
		rules = append(rules, map[string]any{
			"apiGroups": []any{t.Resource.Group}, "resources": []any{t.Resource.Resource}, "verbs": []any{"get", "list", "watch"},
		})
		kinds = append(kinds, Kind{Resource: t.Resource, Weight: 8, Draw: t.drawObject, Fixed: anotherEdition, Lingers: true})
	}
	rights.Object["rules"] = rules
	return append(kinds, Kind{Resource: clusterRoles, Once: []*unstructured.Unstructured{rights}})
}

// edition is an annotation that distinguishes successive objects of one name.
const edition = "chaos.example/edition"

// drawObject draws an object with an owner of a parent kind, or without an owner.
func (t Target) drawObject(r *rand.Rand) (*unstructured.Unstructured, string) {
	namespace, name := t.drawName(r)
	o, summary := object(t.Resource, t.Kind, namespace, name), "nobody's"
	editionOf(r, o)
	if r.IntN(4) > 0 {
		parent, _ := TargetOf(drawOne(r, t.Parents...))
		_, owner := parent.drawName(r)
		ref := with(with(ofKind(parent.Kind, owner), "apiVersion", parent.Resource.GroupVersion().String()), "uid", "")
		_ = unstructured.SetNestedSlice(o.Object, []any{ref}, "metadata", "ownerReferences")
		summary = "of " + owner
	}
	return o, summary
}

// editionOf draws the edition of an object.
func editionOf(r *rand.Rand, o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetAnnotations(map[string]string{edition: numbered(r, "", 2)})
	return o
}

// anotherEdition reports whether the change recreates the object under its name.
func anotherEdition(before, after *unstructured.Unstructured) bool {
	return before.GetAnnotations()[edition] != after.GetAnnotations()[edition]
}

// drawProtectedResource draws a ProtectedResource for the kind with some verbs.
func (t Target) drawProtectedResource(r *rand.Rand) (*unstructured.Unstructured, string) {
	has := verbs(r)
	return t.protectedResource(has), fmt.Sprint(has)
}

// protectedResource returns a ProtectedResource that registers the kind with its parents.
func (t Target) protectedResource(verbs []any) *unstructured.Unstructured {
	singular := strings.ToLower(t.Kind)
	spec := map[string]any{
		"serviceRef": named(t.Group), "kind": t.Kind, "singular": singular, "plural": t.Resource.Resource, "permissions": verbs,
	}
	var parents []any
	for _, kind := range t.Parents {
		parent, _ := TargetOf(kind)
		parents = append(parents, map[string]any{"apiGroup": parent.Group, "kind": kind})
	}
	if len(parents) > 0 {
		spec["parentResources"] = parents
	}
	return specified(ProtectedResources(), "ProtectedResource", "", singular, spec)
}
