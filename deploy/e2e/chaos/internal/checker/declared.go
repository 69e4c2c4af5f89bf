package checker

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/history"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// accessKinds returns the kinds from whose objects access follows, with their types in a history.
func accessKinds() map[schema.GroupVersionResource]string {
	all := map[schema.GroupVersionResource]string{
		workload.ProtectedResources(): history.ProtectedResource, workload.IAMRoles(): history.Role,
		workload.PolicyBindings(): history.PolicyBinding, workload.Groups(): history.Group,
		workload.GroupMemberships(): history.GroupMembership, workload.IAMUsers(): history.User,
	}
	for _, t := range workload.Targets() {
		all[t.Resource] = t.Type()
	}
	return all
}

// declaredObject returns the part of an object from which access follows; nil if the object is being deleted.
func declaredObject(typ string, o unstructured.Unstructured) *history.Object {
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	d := &history.Object{UID: string(o.GetUID())}
	switch typ {
	case history.ProtectedResource:
		group := field(o, "spec", "serviceRef", "name")
		d.Registers = group + "/" + field(o, "spec", "kind")
		for _, verb := range texts(o, "spec", "permissions") {
			d.Permissions = append(d.Permissions, group+"/"+field(o, "spec", "plural")+"."+verb)
		}
		for _, ref := range refs(o, "spec", "parentResources") {
			d.Parents = append(d.Parents, fmt.Sprintf("%v/%v", ref["apiGroup"], ref["kind"]))
		}
	case history.Role:
		d.Permissions = texts(o, "spec", "includedPermissions")
		for _, ref := range refs(o, "spec", "inheritedRoles") {
			d.Inherits = append(d.Inherits, keyOf(history.Role, refer(o, ref)))
		}
	case history.GroupMembership:
		d.Group = history.Key{Type: history.Group, Namespace: field(o, "spec", "groupRef", "namespace"), Name: field(o, "spec", "groupRef", "name")}
		if name := field(o, "status", "user", "name"); name == field(o, "spec", "userRef", "name") {
			d.Member = history.Reference{Key: history.Key{Type: history.User, Name: name}, UID: field(o, "status", "user", "uid")}
		}
	case history.PolicyBinding:
		role, _, _ := unstructured.NestedMap(o.Object, "spec", "roleRef")
		d.Role, d.On = keyOf(history.Role, refer(o, role)), declaredTarget(o)
		for _, s := range refs(o, "spec", "subjects") {
			d.Subjects = append(d.Subjects, referenceTo(fmt.Sprint(s["kind"]), s))
		}
	default:
		d.Owners = declaredOwners(o)
	}
	return d
}

// keyOf returns the key of an object by namespace/name.
func keyOf(typ, name string) history.Key {
	namespace, name, _ := strings.Cut(name, "/")
	return history.Key{Type: typ, Namespace: namespace, Name: name}
}

func referenceTo(typ string, ref map[string]any) history.Reference {
	text := func(key string) string { s, _ := ref[key].(string); return s }
	return history.Reference{Key: history.Key{Type: typ, Namespace: text("namespace"), Name: text("name")}, UID: text("uid")}
}

// declaredTarget returns the target of a PolicyBinding, without a name if that is all objects of a type.
func declaredTarget(b unstructured.Unstructured) history.Reference {
	if ref, ok, _ := unstructured.NestedMap(b.Object, "spec", "resourceSelector", "resourceRef"); ok {
		return referenceTo(fmt.Sprintf("%v/%v", ref["apiGroup"], ref["kind"]), ref)
	}
	kind := func(key string) string { return field(b, "spec", "resourceSelector", "resourceKind", key) }
	return history.Reference{Key: history.Key{Type: kind("apiGroup") + "/" + kind("kind")}}
}

// declaredOwners returns the owners of a target. The owner of a project is in its status.
func declaredOwners(o unstructured.Unstructured) (owners []history.Reference) {
	of := func(kind, name, uid string) {
		t, _ := workload.TargetOf(kind)
		owners = append(owners, history.Reference{Key: history.Key{Type: t.Type(), Name: name}, UID: uid})
	}
	if o.GetKind() == "Project" {
		if name := field(o, "status", "organization", "name"); name == field(o, "spec", "ownerRef", "name") {
			of("Organization", name, field(o, "status", "organization", "uid"))
		}
		return owners
	}
	for _, owner := range o.GetOwnerReferences() {
		of(owner.Kind, owner.Name, string(owner.UID))
	}
	return owners
}
