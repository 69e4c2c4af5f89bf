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

// access is the access that the objects of IAM declare.
type access struct {
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

func newAccess(s *Snapshot) *access {
	a := &access{
		permissions: map[string]bool{}, kinds: map[string]bool{}, above: map[string]map[string]bool{}, tuples: map[string]bool{}, held: map[string][]string{},
		objects: map[schema.GroupVersionResource]map[string]unstructured.Unstructured{}, going: map[types.UID]bool{},
	}
	for gvr, all := range s.byKind {
		for _, o := range all {
			a.going[o.GetUID()] = o.GetDeletionTimestamp() != nil
		}
		a.objects[gvr] = map[string]unstructured.Unstructured{}
		for _, o := range s.Live(gvr) {
			a.objects[gvr][o.GetNamespace()+"/"+o.GetName()] = o
		}
	}
	for _, p := range a.objects[workload.ProtectedResources()] {
		group := field(p, "spec", "serviceRef", "name")
		typ := group + "/" + field(p, "spec", "kind")
		a.kinds[typ] = true
		parents, _, _ := unstructured.NestedSlice(p.Object, "spec", "parentResources")
		for _, item := range parents {
			ref, _ := item.(map[string]any)
			set(a.above, typ, fmt.Sprintf("%v/%v", ref["apiGroup"], ref["kind"]))
		}
		if err := wantCondition(p, "Observed", true); err != nil {
			a.wrong = append(a.wrong, fmt.Errorf("ProtectedResource %s: %w", p.GetName(), err))
		}
		verbs, _, _ := unstructured.NestedStringSlice(p.Object, "spec", "permissions")
		for _, verb := range verbs {
			a.permissions[group+"/"+field(p, "spec", "plural")+"."+verb] = true
		}
	}
	a.roles()
	a.memberships()
	a.bindings()
	a.parents()
	return a
}

func (a *access) want(object, relation, user string) {
	if t := (Tuple{object, relation, user}).String(); !a.tuples[t] {
		a.tuples[t] = true
		a.held[object+"#"+relation] = append(a.held[object+"#"+relation], user)
	}
}

func (a *access) ready(o unstructured.Unstructured, want bool) {
	if err := wantCondition(o, "Ready", want); err != nil {
		a.wrong = append(a.wrong, fmt.Errorf("%s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err))
	}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func internal(kind string, o unstructured.Unstructured) string {
	return iamPrefix + kind + ":" + string(o.GetUID())
}

// refer returns the namespace/name of a reference. Without a namespace, it means the namespace of the referring object.
func refer(from unstructured.Unstructured, ref map[string]any) string {
	namespace, _ := ref["namespace"].(string)
	if namespace == "" {
		namespace = from.GetNamespace()
	}
	return fmt.Sprintf("%s/%v", namespace, ref["name"])
}

func (a *access) roles() {
	roles := a.objects[workload.IAMRoles()]
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
				follow(refer(r, ref))
			}
		}
		follow(name)
		for permission := range all {
			if whole = whole && a.permissions[permission]; a.permissions[permission] {
				a.want(internal("InternalRole", role), hashOf(permission)[:12], iamPrefix+"InternalUser:*")
			}
		}
		a.ready(role, whole)
	}
}

func (a *access) memberships() {
	for _, m := range a.objects[workload.GroupMemberships()] {
		name := field(m, "spec", "userRef", "name")
		user, there := a.objects[workload.IAMUsers()]["/"+name]
		if there && field(m, "status", "user", "name") != name {
			a.wrong = append(a.wrong, fmt.Errorf("GroupMembership %s/%s is for nobody yet", m.GetNamespace(), m.GetName()))
		}
		same := there && field(m, "status", "user", "uid") == string(user.GetUID())
		group, grouped := a.objects[workload.Groups()][field(m, "spec", "groupRef", "namespace")+"/"+field(m, "spec", "groupRef", "name")]
		if same && grouped {
			a.want(internal("InternalUserGroup", group), "member", iamUser+name)
		}
		a.ready(m, same && grouped)
	}
}

// tokenGroup returns the userset of a group that comes from the authenticator.
func tokenGroup(name string) string {
	return iamPrefix + "InternalTokenGroup:" + strings.ReplaceAll(name, ":", "%3A") + "#member"
}

// subject returns the OpenFGA user of a subject, or an empty text if it does not exist or has another UID.
func (a *access) subject(s map[string]any) string {
	name := fmt.Sprint(s["name"])
	if strings.Contains(name, ":") {
		return tokenGroup(name)
	}
	if s["kind"] == "User" {
		if u, there := a.objects[workload.IAMUsers()]["/"+name]; there && s["uid"] == string(u.GetUID()) {
			return iamUser + name
		}
		return ""
	}
	if g, there := a.objects[workload.Groups()][refer(unstructured.Unstructured{}, s)]; there && s["uid"] == string(g.GetUID()) {
		return internal("InternalUserGroup", g) + "#member"
	}
	return ""
}

// target returns the OpenFGA object of a binding's target, or an empty text if none exists.
func (a *access) target(b unstructured.Unstructured) string {
	all := func(key string) string { return field(b, "spec", "resourceSelector", "resourceKind", key) }
	if typ := all("apiGroup") + "/" + all("kind"); a.kinds[typ] {
		return rootOf(typ)
	}
	ref := func(key string) string { return field(b, "spec", "resourceSelector", "resourceRef", key) }
	t, _ := workload.TargetOf(ref("kind"))
	o, there := a.objects[t.Resource][ref("namespace")+"/"+ref("name")]
	if there && a.kinds[t.Type()] && ref("apiGroup") == t.Group && ref("uid") == string(o.GetUID()) {
		return objectOf(t, o.GetNamespace()+"/"+o.GetName())
	}
	return ""
}

func (a *access) bindings() {
	for _, b := range a.objects[workload.PolicyBindings()] {
		ref, _, _ := unstructured.NestedMap(b.Object, "spec", "roleRef")
		role, there := a.objects[workload.IAMRoles()][refer(b, ref)]
		target, whole := a.target(b), there
		list, _, _ := unstructured.NestedSlice(b.Object, "spec", "subjects")
		for _, item := range list {
			s, _ := item.(map[string]any)
			subject := a.subject(s)
			whole = whole && subject != ""
			if there && target != "" && subject != "" {
				grant := iamPrefix + "RoleBinding:" + string(role.GetUID()) + "/" + hashOf(target)
				a.want(target, "b", grant)
				a.want(grant, "r", internal("InternalRole", role))
				a.want(grant, "u", subject)
			}
		}
		a.ready(b, whole && target != "")
	}
}

// objectOf returns the OpenFGA object of a target by namespace/name.
func objectOf(t workload.Target, name string) string {
	return t.Type() + ":" + strings.TrimPrefix(name, "/")
}

// parents adds the tuples of parents. The parent of a project is in its status; other objects have owner references.
func (a *access) parents() {
	for _, t := range workload.Targets() {
		for name, o := range a.objects[t.Resource] {
			owners := o.GetOwnerReferences()
			if t.Resource == workload.Projects() {
				first := func(key string) string { return field(o, "status", "organization", key) }
				owners = nil
				if first("name") == field(o, "spec", "ownerRef", "name") {
					owners = []metav1.OwnerReference{{Kind: "Organization", Name: first("name"), UID: types.UID(first("uid"))}}
				}
			}
			for _, owner := range owners {
				a.parent(t, name, owner)
			}
		}
	}
}

func (a *access) parent(t workload.Target, name string, owner metav1.OwnerReference) {
	of, _ := workload.TargetOf(owner.Kind)
	parent, there := a.objects[of.Resource]["/"+owner.Name]
	switch there = there && parent.GetUID() == owner.UID; {
	case !there && t.Resource != workload.Projects() && !a.going[owner.UID]:
		a.wrong = append(a.wrong, fmt.Errorf("%s %s belongs to a %s that is gone, and is not gone with it", t.Kind, name, owner.Kind))
	case there && a.kinds[t.Type()] && a.kinds[of.Type()] && a.above[t.Type()][of.Type()]:
		a.want(objectOf(t, name), "p", objectOf(of, "/"+owner.Name))
	}
}

// addAccess adds the tuples that IAM requires in its store. It returns the written part of the live model, without the
// types of protected kinds, which it checks.
func (d *declared) addAccess(s *Snapshot, live *openfgav1.AuthorizationModel) (written *openfgav1.AuthorizationModel, err error) {
	a := newAccess(s)
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
