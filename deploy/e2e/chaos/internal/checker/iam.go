package checker

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

const (
	iamPrefix = workload.IAMGroup + "/"
	iamUser   = iamPrefix + "InternalUser:u/"
)

// declaredIAMAccess is the access that the objects of IAM declare.
type declaredIAMAccess struct {
	// permissions holds the registered permissions, kinds the registered types, above the parent types of each type.
	permissions, kinds map[string]bool
	above              map[string]map[string]bool
	// objects holds the objects that are not being deleted, by kind and namespace/name.
	objects map[schema.GroupVersionResource]map[string]unstructured.Unstructured
	// going is true for objects that are being deleted; they give no access.
	going  map[types.UID]bool
	tuples map[string]bool
	// held holds the users of all tuples by object#relation.
	held  map[string][]string
	wrong []error
}

func newDeclaredAccess(s *ObjectSnapshot) *declaredIAMAccess {
	a := &declaredIAMAccess{
		permissions: map[string]bool{}, kinds: map[string]bool{}, above: map[string]map[string]bool{}, tuples: map[string]bool{}, held: map[string][]string{},
		objects: map[schema.GroupVersionResource]map[string]unstructured.Unstructured{}, going: map[types.UID]bool{},
	}
	for gvr, all := range s.byKind {
		for _, o := range all {
			a.going[o.GetUID()] = o.GetDeletionTimestamp() != nil
		}
		a.objects[gvr] = map[string]unstructured.Unstructured{}
		for _, o := range s.UndeletedOfKind(gvr) {
			a.objects[gvr][o.GetNamespace()+"/"+o.GetName()] = o
		}
	}
	for _, p := range a.objects[workload.ProtectedResourceResource()] {
		group := textField(p, "spec", "serviceRef", "name")
		typ := group + "/" + textField(p, "spec", "kind")
		a.kinds[typ] = true
		parents, _, _ := unstructured.NestedSlice(p.Object, "spec", "parentResources")
		for _, item := range parents {
			ref, _ := item.(map[string]any)
			addToSet(a.above, typ, fmt.Sprintf("%v/%v", ref["apiGroup"], ref["kind"]))
		}
		if err := requireCondition(p, "Observed", true); err != nil {
			a.wrong = append(a.wrong, fmt.Errorf("ProtectedResource %s: %w", p.GetName(), err))
		}
		verbs, _, _ := unstructured.NestedStringSlice(p.Object, "spec", "permissions")
		for _, verb := range verbs {
			a.permissions[group+"/"+textField(p, "spec", "plural")+"."+verb] = true
		}
	}
	a.addRoles()
	a.addMemberships()
	a.addBindings()
	a.addParents()
	return a
}

func (a *declaredIAMAccess) addTuple(object, relation, user string) {
	if t := (Tuple{object, relation, user}).String(); !a.tuples[t] {
		a.tuples[t] = true
		a.held[object+"#"+relation] = append(a.held[object+"#"+relation], user)
	}
}

func (a *declaredIAMAccess) requireReady(o unstructured.Unstructured, want bool) {
	if err := requireCondition(o, "Ready", want); err != nil {
		a.wrong = append(a.wrong, fmt.Errorf("%s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err))
	}
}

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func iamObject(kind string, o unstructured.Unstructured) string {
	return iamPrefix + kind + ":" + string(o.GetUID())
}

// referencedName returns the namespace/name of a reference. Without a namespace, it means the namespace of the referring object.
func referencedName(from unstructured.Unstructured, ref map[string]any) string {
	namespace, _ := ref["namespace"].(string)
	if namespace == "" {
		namespace = from.GetNamespace()
	}
	return fmt.Sprintf("%s/%v", namespace, ref["name"])
}

func (a *declaredIAMAccess) addRoles() {
	roles := a.objects[workload.IAMRoleResource()]
	for name, role := range roles {
		all, whole := map[string]bool{}, true
		seen := map[string]bool{}
		var follow func(name string)
		follow = func(name string) {
			r, there := roles[name]
			if whole = whole && there; !there || seen[name] {
				return
			}
			seen[name] = true
			permissions, _, _ := unstructured.NestedStringSlice(r.Object, "spec", "includedPermissions")
			for _, permission := range permissions {
				all[permission] = true
			}
			inherited, _, _ := unstructured.NestedSlice(r.Object, "spec", "inheritedRoles")
			for _, item := range inherited {
				ref, _ := item.(map[string]any)
				follow(referencedName(r, ref))
			}
		}
		follow(name)
		for permission := range all {
			if whole = whole && a.permissions[permission]; a.permissions[permission] {
				a.addTuple(iamObject("InternalRole", role), sha256Hex(permission)[:12], iamPrefix+"InternalUser:*")
			}
		}
		a.requireReady(role, whole)
	}
}

func (a *declaredIAMAccess) addMemberships() {
	for _, m := range a.objects[workload.GroupMembershipResource()] {
		name := textField(m, "spec", "userRef", "name")
		user, there := a.objects[workload.IAMUserResource()]["/"+name]
		if there && textField(m, "status", "user", "name") != name {
			a.wrong = append(a.wrong, fmt.Errorf("GroupMembership %s/%s is for nobody yet", m.GetNamespace(), m.GetName()))
		}
		same := there && textField(m, "status", "user", "uid") == string(user.GetUID())
		group, grouped := a.objects[workload.IAMGroupResource()][textField(m, "spec", "groupRef", "namespace")+"/"+textField(m, "spec", "groupRef", "name")]
		if same && grouped {
			a.addTuple(iamObject("InternalUserGroup", group), "member", iamUser+name)
		}
		a.requireReady(m, same && grouped)
	}
}

// tokenGroupUserset returns the userset of a group that comes from the authenticator.
func tokenGroupUserset(name string) string {
	return iamPrefix + "InternalTokenGroup:" + strings.ReplaceAll(name, ":", "%3A") + "#member"
}

// openFGASubject returns the OpenFGA user of a subject, or an empty text if it does not exist or has another UID.
func (a *declaredIAMAccess) openFGASubject(s map[string]any) string {
	name := fmt.Sprint(s["name"])
	if strings.Contains(name, ":") {
		return tokenGroupUserset(name)
	}
	if s["kind"] == "User" {
		if u, there := a.objects[workload.IAMUserResource()]["/"+name]; there && s["uid"] == string(u.GetUID()) {
			return iamUser + name
		}
		return ""
	}
	if g, there := a.objects[workload.IAMGroupResource()][referencedName(unstructured.Unstructured{}, s)]; there && s["uid"] == string(g.GetUID()) {
		return iamObject("InternalUserGroup", g) + "#member"
	}
	return ""
}

// bindingTarget returns the OpenFGA object of a binding's target, or an empty text if none exists.
func (a *declaredIAMAccess) bindingTarget(b unstructured.Unstructured) string {
	all := func(key string) string { return textField(b, "spec", "resourceSelector", "resourceKind", key) }
	if typ := all("apiGroup") + "/" + all("kind"); a.kinds[typ] {
		return rootObjectOf(typ)
	}
	ref := func(key string) string { return textField(b, "spec", "resourceSelector", "resourceRef", key) }
	t, _ := workload.TargetOf(ref("kind"))
	o, there := a.objects[t.Resource][ref("namespace")+"/"+ref("name")]
	if there && a.kinds[t.OpenFGAType()] && ref("apiGroup") == t.Group && ref("uid") == string(o.GetUID()) {
		return openFGAObject(t, o.GetNamespace()+"/"+o.GetName())
	}
	return ""
}

func (a *declaredIAMAccess) addBindings() {
	for _, b := range a.objects[workload.PolicyBindingResource()] {
		ref, _, _ := unstructured.NestedMap(b.Object, "spec", "roleRef")
		role, there := a.objects[workload.IAMRoleResource()][referencedName(b, ref)]
		target, whole := a.bindingTarget(b), there
		list, _, _ := unstructured.NestedSlice(b.Object, "spec", "subjects")
		for _, item := range list {
			s, _ := item.(map[string]any)
			subject := a.openFGASubject(s)
			whole = whole && subject != ""
			if there && target != "" && subject != "" {
				grant := iamPrefix + "RoleBinding:" + string(role.GetUID()) + "/" + sha256Hex(target)
				a.addTuple(target, "b", grant)
				a.addTuple(grant, "r", iamObject("InternalRole", role))
				a.addTuple(grant, "u", subject)
			}
		}
		a.requireReady(b, whole && target != "")
	}
}

// openFGAObject returns the OpenFGA object of a target by namespace/name.
func openFGAObject(t workload.GrantTarget, name string) string {
	return t.OpenFGAType() + ":" + strings.TrimPrefix(name, "/")
}

// addParents adds the tuples of parents. The parent of a project is in its status; other objects have owner references.
func (a *declaredIAMAccess) addParents() {
	for _, t := range workload.AllTargets() {
		for name, o := range a.objects[t.Resource] {
			owners := o.GetOwnerReferences()
			if t.Resource == workload.ProjectResource() {
				first := func(key string) string { return textField(o, "status", "organization", key) }
				owners = nil
				if first("name") == textField(o, "spec", "ownerRef", "name") {
					owners = []metav1.OwnerReference{{Kind: "Organization", Name: first("name"), UID: types.UID(first("uid"))}}
				}
			}
			for _, owner := range owners {
				a.addParent(t, name, owner)
			}
		}
	}
}

func (a *declaredIAMAccess) addParent(t workload.GrantTarget, name string, owner metav1.OwnerReference) {
	of, _ := workload.TargetOf(owner.Kind)
	parent, there := a.objects[of.Resource]["/"+owner.Name]
	switch there = there && parent.GetUID() == owner.UID; {
	case !there && t.Resource != workload.ProjectResource() && !a.going[owner.UID]:
		a.wrong = append(a.wrong, fmt.Errorf("%s %s belongs to a %s that is gone, and is not gone with it", t.Kind, name, owner.Kind))
	case there && a.kinds[t.OpenFGAType()] && a.kinds[of.OpenFGAType()] && a.above[t.OpenFGAType()][of.OpenFGAType()]:
		a.addTuple(openFGAObject(t, name), "p", openFGAObject(of, "/"+owner.Name))
	}
}

// addIAMTuples adds the tuples that IAM requires in its store. It returns the written part of the live model, without the
// types of protected kinds, which it checks.
func (d *declaredStore) addIAMTuples(s *ObjectSnapshot, live *openfgav1.AuthorizationModel) (written *openfgav1.AuthorizationModel, err error) {
	a := newDeclaredAccess(s)
	maps.Copy(d.tuples, a.tuples)
	kinds := map[string]bool{}
	written = &openfgav1.AuthorizationModel{Id: live.GetId()}
	for _, t := range live.GetTypeDefinitions() {
		switch typ := t.GetType(); {
		case !strings.Contains(typ, "/"):
			written.TypeDefinitions = append(written.TypeDefinitions, t)
		case !strings.HasPrefix(typ, iamPrefix):
			kinds[typ] = true
		}
	}
	return written, errors.Join(append(a.wrong, compareMaps("kinds", kinds, a.kinds))...)
}
