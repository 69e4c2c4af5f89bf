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
		workload.ProtectedResourceResource(): history.ProtectedResource, workload.IAMRoleResource(): history.Role,
		workload.PolicyBindingResource(): history.PolicyBinding, workload.IAMGroupResource(): history.Group,
		workload.GroupMembershipResource(): history.GroupMembership, workload.IAMUserResource(): history.User,
	}
	for _, t := range workload.AllTargets() {
		all[t.Resource] = t.OpenFGAType()
	}
	return all
}

// declaredObject returns the part of an object from which access follows; nil if the object is being deleted.
func declaredObject(typ string, o unstructured.Unstructured) *history.ObjectContent {
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	d := &history.ObjectContent{UID: string(o.GetUID())}
	switch typ {
	case history.ProtectedResource:
		group := textField(o, "spec", "serviceRef", "name")
		d.Registers = group + "/" + textField(o, "spec", "kind")
		for _, verb := range stringList(o, "spec", "permissions") {
			d.Permissions = append(d.Permissions, group+"/"+textField(o, "spec", "plural")+"."+verb)
		}
		for _, ref := range referenceList(o, "spec", "parentResources") {
			d.Parents = append(d.Parents, fmt.Sprintf("%v/%v", ref["apiGroup"], ref["kind"]))
		}
	case history.Role:
		d.Permissions = stringList(o, "spec", "includedPermissions")
		for _, ref := range referenceList(o, "spec", "inheritedRoles") {
			d.Inherits = append(d.Inherits, historyKey(history.Role, referencedName(o, ref)))
		}
	case history.GroupMembership:
		d.Group = history.Key{Type: history.Group, Namespace: textField(o, "spec", "groupRef", "namespace"), Name: textField(o, "spec", "groupRef", "name")}
		if name := textField(o, "status", "user", "name"); name == textField(o, "spec", "userRef", "name") {
			d.Member = history.Reference{Key: history.Key{Type: history.User, Name: name}, UID: textField(o, "status", "user", "uid")}
		}
	case history.PolicyBinding:
		role, _, _ := unstructured.NestedMap(o.Object, "spec", "roleRef")
		d.Role, d.On = historyKey(history.Role, referencedName(o, role)), declaredTarget(o)
		for _, s := range referenceList(o, "spec", "subjects") {
			d.Subjects = append(d.Subjects, referenceTo(fmt.Sprint(s["kind"]), s))
		}
	default:
		d.Owners = declaredOwners(o)
	}
	return d
}

// historyKey returns the key of an object by namespace/name.
func historyKey(typ, name string) history.Key {
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
	kind := func(key string) string { return textField(b, "spec", "resourceSelector", "resourceKind", key) }
	return history.Reference{Key: history.Key{Type: kind("apiGroup") + "/" + kind("kind")}}
}

// declaredOwners returns the owners of a target. The owner of a project is in its status.
func declaredOwners(o unstructured.Unstructured) (owners []history.Reference) {
	of := func(kind, name, uid string) {
		t, _ := workload.TargetOf(kind)
		owners = append(owners, history.Reference{Key: history.Key{Type: t.OpenFGAType(), Name: name}, UID: uid})
	}
	if o.GetKind() == "Project" {
		if name := textField(o, "status", "organization", "name"); name == textField(o, "spec", "ownerRef", "name") {
			of("Organization", name, textField(o, "status", "organization", "uid"))
		}
		return owners
	}
	for _, owner := range o.GetOwnerReferences() {
		of(owner.Kind, owner.Name, string(owner.UID))
	}
	return owners
}
