package checker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// allowedAccess is the union of the access that some states of the objects of IAM declare. Objects are identified by
// name: a recreated object counts as the same.
type allowedAccess struct {
	// permissions holds the registered permissions, above the parent types of each type.
	permissions map[string]bool
	above       map[string]map[string]bool
	// gives holds the permissions of each role, inherits its inherited roles.
	gives, inherits map[string]map[string]bool
	// there holds the objects that existed, as "resource namespace/name". Targets are also there by their names in
	// OpenFGA.
	there map[string]bool
	// members holds the users of each group.
	members map[string]map[string]bool
	// granted holds the grants on each object and on each kind, owners the parents of each object.
	granted map[string]map[allowedGrant]bool
	owners  map[string]map[string]bool
}

// allowedGrant is a role with its holder: a user, a group, or a group of the authenticator.
type allowedGrant struct{ role, kind, subject string }

func newAllowedAccess() *allowedAccess {
	sets := func() map[string]map[string]bool { return map[string]map[string]bool{} }
	return &allowedAccess{
		permissions: map[string]bool{}, there: map[string]bool{}, above: sets(), gives: sets(), inherits: sets(), members: sets(), owners: sets(),
		granted: map[string]map[allowedGrant]bool{},
	}
}

// addState adds one state of an object. An object that is being deleted gives nothing.
func (p *allowedAccess) addState(kind string, o unstructured.Unstructured) {
	if o.GetDeletionTimestamp() != nil {
		return
	}
	name := o.GetNamespace() + "/" + o.GetName()
	p.there[kind+" "+name] = true
	if t, ok := workload.TargetOf(o.GetKind()); ok {
		p.there[openFGAObject(t, name)] = true
	}
	switch kind {
	case workload.ProtectedResourceResource().Resource:
		group := textField(o, "spec", "serviceRef", "name")
		for _, verb := range stringList(o, "spec", "permissions") {
			p.permissions[group+"/"+textField(o, "spec", "plural")+"."+verb] = true
		}
		for _, ref := range referenceList(o, "spec", "parentResources") {
			addToSet(p.above, group+"/"+textField(o, "spec", "kind"), fmt.Sprintf("%v/%v", ref["apiGroup"], ref["kind"]))
		}
	case workload.IAMRoleResource().Resource: // A Role of Kubernetes lacks these fields.
		for _, permission := range stringList(o, "spec", "includedPermissions") {
			addToSet(p.gives, name, permission)
		}
		for _, ref := range referenceList(o, "spec", "inheritedRoles") {
			addToSet(p.inherits, name, referencedName(o, ref))
		}
	case workload.GroupMembershipResource().Resource:
		addToSet(p.members, textField(o, "spec", "groupRef", "namespace")+"/"+textField(o, "spec", "groupRef", "name"), textField(o, "spec", "userRef", "name"))
	case workload.PolicyBindingResource().Resource:
		p.addGrant(o)
	case workload.ProjectResource().Resource:
		p.addOwner(o, "Organization", textField(o, "spec", "ownerRef", "name"))
	default:
		for _, owner := range o.GetOwnerReferences() {
			p.addOwner(o, owner.Kind, owner.Name)
		}
	}
}

func stringList(o unstructured.Unstructured, path ...string) []string {
	list, _, _ := unstructured.NestedStringSlice(o.Object, path...)
	return list
}

func referenceList(o unstructured.Unstructured, path ...string) (all []map[string]any) {
	list, _, _ := unstructured.NestedSlice(o.Object, path...)
	for _, item := range list {
		if ref, ok := item.(map[string]any); ok {
			all = append(all, ref)
		}
	}
	return all
}

func (p *allowedAccess) addOwner(o unstructured.Unstructured, kind, owner string) {
	if of, ok := workload.TargetOf(o.GetKind()); ok {
		parent, _ := workload.TargetOf(kind)
		addToSet(p.owners, openFGAObject(of, o.GetNamespace()+"/"+o.GetName()), openFGAObject(parent, "/"+owner))
	}
}

func (p *allowedAccess) addGrant(b unstructured.Unstructured) {
	role, _, _ := unstructured.NestedMap(b.Object, "spec", "roleRef")
	for _, s := range referenceList(b, "spec", "subjects") {
		g := allowedGrant{referencedName(b, role), fmt.Sprint(s["kind"]), fmt.Sprint(s["name"])}
		if namespace, ok := s["namespace"].(string); ok {
			g.subject = namespace + "/" + g.subject
		}
		addToSet(p.granted, namedTarget(b), g)
	}
}

// namedTarget returns the OpenFGA object of a binding's target, whether it exists or not.
func namedTarget(b unstructured.Unstructured) string {
	ref := func(key string) string { return textField(b, "spec", "resourceSelector", "resourceRef", key) }
	if t, ok := workload.TargetOf(ref("kind")); ok {
		return openFGAObject(t, ref("namespace")+"/"+ref("name"))
	}
	all := func(key string) string { return textField(b, "spec", "resourceSelector", "resourceKind", key) }
	return rootObjectOf(all("apiGroup") + "/" + all("kind"))
}

// rootObjectOf returns the OpenFGA object that stands for all objects of a type.
func rootObjectOf(typ string) string { return iamPrefix + "Root:" + typ }

// mayAllow reports whether the answer to a question may be yes.
func (p *allowedAccess) mayAllow(q accessQuestion) bool {
	permission := permissionOf(q)
	if !p.permissions[permission] {
		return false
	}
	objects := []string{openFGAObject(q.target, q.Resource.Namespace+"/"+q.Resource.Name)}
	for i := 0; i < len(objects); i++ {
		typ, _, _ := strings.Cut(objects[i], ":")
		at := []string{rootObjectOf(typ)}
		if p.there[objects[i]] {
			at = append(at, objects[i])
		}
		for _, at := range at {
			for g := range p.granted[at] {
				if p.mayInclude(g, q.Subject) && p.mayGive(g.role, permission, map[string]bool{}) {
					return true
				}
			}
		}
		for owner := range p.owners[objects[i]] {
			if above, _, _ := strings.Cut(owner, ":"); p.above[typ][above] && p.there[owner] {
				objects = append(objects, owner)
			}
		}
	}
	return false
}

// mayInclude reports whether the holder of a grant may include who.
func (p *allowedAccess) mayInclude(g allowedGrant, who questionSubject) bool {
	isUser := p.hasExisted(workload.IAMUserResource(), "/"+who.User)
	if g.kind == "User" {
		return isUser && g.subject == who.User
	}
	return slices.Contains(who.Groups, g.subject) || isUser && p.hasExisted(workload.IAMGroupResource(), g.subject) && p.members[g.subject][who.User]
}

// hasExisted reports whether an object existed, by namespace/name.
func (p *allowedAccess) hasExisted(kind schema.GroupVersionResource, name string) bool {
	return p.there[kind.Resource+" "+name]
}

// mayGive reports whether a role may give a permission.
func (p *allowedAccess) mayGive(role, permission string, seen map[string]bool) bool {
	if seen[role] {
		return false
	}
	seen[role] = true
	if p.gives[role][permission] {
		return true
	}
	for inherited := range p.inherits[role] {
		if p.mayGive(inherited, permission, seen) {
			return true
		}
	}
	return false
}

// mayHoldTuple reports whether the IAM store may hold a tuple, as far as names show.
func (p *allowedAccess) mayHoldTuple(t Tuple) bool {
	user, isUser := strings.CutPrefix(t.User, iamUser)
	switch {
	case t.Relation == "p":
		return p.there[t.Object] && p.there[t.User] && p.owners[t.Object][t.User]
	case t.Relation == "b":
		return len(p.granted[t.Object]) > 0 && (p.there[t.Object] || strings.HasPrefix(t.Object, rootObjectOf("")))
	case !isUser:
		return true
	case !p.hasExisted(workload.IAMUserResource(), "/"+user):
		return false
	case t.Relation == "member":
		return slices.ContainsFunc(slices.Collect(maps.Values(p.members)), func(users map[string]bool) bool { return users[user] })
	}
	for target, grants := range p.granted {
		if !strings.HasSuffix(t.Object, "/"+sha256Hex(target)) {
			continue
		}
		for g := range grants {
			if g.kind == "User" && g.subject == user {
				return true
			}
		}
	}
	return false
}
