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

// possibleAccess is the union of the access that some states of the objects of IAM declare. Objects are identified by
// name: a recreated object counts as the same.
type possibleAccess struct {
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
	granted map[string]map[possibleGrant]bool
	owners  map[string]map[string]bool
}

// possibleGrant is a role with its holder: a user, a group, or a group of the authenticator.
type possibleGrant struct{ role, kind, subject string }

func newPossibleAccess() *possibleAccess {
	sets := func() map[string]map[string]bool { return map[string]map[string]bool{} }
	return &possibleAccess{
		permissions: map[string]bool{}, there: map[string]bool{}, above: sets(), gives: sets(), inherits: sets(), members: sets(), owners: sets(),
		granted: map[string]map[possibleGrant]bool{},
	}
}

// add adds one state of an object. An object that is being deleted gives nothing.
func (p *possibleAccess) add(kind string, o unstructured.Unstructured) {
	if o.GetDeletionTimestamp() != nil {
		return
	}
	name := o.GetNamespace() + "/" + o.GetName()
	p.there[kind+" "+name] = true
	if t, ok := workload.TargetOf(o.GetKind()); ok {
		p.there[objectOf(t, name)] = true
	}
	switch kind {
	case workload.ProtectedResources().Resource:
		group := field(o, "spec", "serviceRef", "name")
		for _, verb := range texts(o, "spec", "permissions") {
			p.permissions[group+"/"+field(o, "spec", "plural")+"."+verb] = true
		}
		for _, ref := range refs(o, "spec", "parentResources") {
			set(p.above, group+"/"+field(o, "spec", "kind"), fmt.Sprintf("%v/%v", ref["apiGroup"], ref["kind"]))
		}
	case workload.IAMRoles().Resource: // A Role of Kubernetes lacks these fields.
		for _, permission := range texts(o, "spec", "includedPermissions") {
			set(p.gives, name, permission)
		}
		for _, ref := range refs(o, "spec", "inheritedRoles") {
			set(p.inherits, name, refer(o, ref))
		}
	case workload.GroupMemberships().Resource:
		set(p.members, field(o, "spec", "groupRef", "namespace")+"/"+field(o, "spec", "groupRef", "name"), field(o, "spec", "userRef", "name"))
	case workload.PolicyBindings().Resource:
		p.grant(o)
	case workload.Projects().Resource:
		p.own(o, "Organization", field(o, "spec", "ownerRef", "name"))
	default:
		for _, owner := range o.GetOwnerReferences() {
			p.own(o, owner.Kind, owner.Name)
		}
	}
}

func texts(o unstructured.Unstructured, path ...string) []string {
	list, _, _ := unstructured.NestedStringSlice(o.Object, path...)
	return list
}

func refs(o unstructured.Unstructured, path ...string) (all []map[string]any) {
	list, _, _ := unstructured.NestedSlice(o.Object, path...)
	for _, item := range list {
		if ref, ok := item.(map[string]any); ok {
			all = append(all, ref)
		}
	}
	return all
}

func (p *possibleAccess) own(o unstructured.Unstructured, kind, owner string) {
	if of, ok := workload.TargetOf(o.GetKind()); ok {
		parent, _ := workload.TargetOf(kind)
		set(p.owners, objectOf(of, o.GetNamespace()+"/"+o.GetName()), objectOf(parent, "/"+owner))
	}
}

func (p *possibleAccess) grant(b unstructured.Unstructured) {
	role, _, _ := unstructured.NestedMap(b.Object, "spec", "roleRef")
	for _, s := range refs(b, "spec", "subjects") {
		g := possibleGrant{refer(b, role), fmt.Sprint(s["kind"]), fmt.Sprint(s["name"])}
		if namespace, ok := s["namespace"].(string); ok {
			g.subject = namespace + "/" + g.subject
		}
		set(p.granted, targetNamed(b), g)
	}
}

// targetNamed returns the OpenFGA object of a binding's target, whether it exists or not.
func targetNamed(b unstructured.Unstructured) string {
	ref := func(key string) string { return field(b, "spec", "resourceSelector", "resourceRef", key) }
	if t, ok := workload.TargetOf(ref("kind")); ok {
		return objectOf(t, ref("namespace")+"/"+ref("name"))
	}
	all := func(key string) string { return field(b, "spec", "resourceSelector", "resourceKind", key) }
	return rootOf(all("apiGroup") + "/" + all("kind"))
}

// rootOf returns the OpenFGA object that stands for all objects of a type.
func rootOf(typ string) string { return iamPrefix + "Root:" + typ }

// allows reports whether the answer to a question may be yes.
func (p *possibleAccess) allows(q question) bool {
	permission := permissionOf(q)
	if !p.permissions[permission] {
		return false
	}
	objects := []string{objectOf(q.target, q.Resource.Namespace+"/"+q.Resource.Name)}
	for i := 0; i < len(objects); i++ {
		typ, _, _ := strings.Cut(objects[i], ":")
		at := []string{rootOf(typ)}
		if p.there[objects[i]] {
			at = append(at, objects[i])
		}
		for _, at := range at {
			for g := range p.granted[at] {
				if p.means(g, q.Subject) && p.has(g.role, permission, map[string]bool{}) {
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

// means reports whether the holder of a grant may include who.
func (p *possibleAccess) means(g possibleGrant, who asker) bool {
	isUser := p.was(workload.IAMUsers(), "/"+who.User)
	if g.kind == "User" {
		return isUser && g.subject == who.User
	}
	return slices.Contains(who.Groups, g.subject) || isUser && p.was(workload.Groups(), g.subject) && p.members[g.subject][who.User]
}

// was reports whether an object existed, by namespace/name.
func (p *possibleAccess) was(kind schema.GroupVersionResource, name string) bool {
	return p.there[kind.Resource+" "+name]
}

// has reports whether a role may give a permission.
func (p *possibleAccess) has(role, permission string, seen map[string]bool) bool {
	if seen[role] {
		return false
	}
	seen[role] = true
	if p.gives[role][permission] {
		return true
	}
	for inherited := range p.inherits[role] {
		if p.has(inherited, permission, seen) {
			return true
		}
	}
	return false
}

// holds reports whether the IAM store may hold a tuple, as far as names show.
func (p *possibleAccess) holds(t Tuple) bool {
	user, isUser := strings.CutPrefix(t.User, iamUser)
	switch {
	case t.Relation == "p":
		return p.there[t.Object] && p.there[t.User] && p.owners[t.Object][t.User]
	case t.Relation == "b":
		return len(p.granted[t.Object]) > 0 && (p.there[t.Object] || strings.HasPrefix(t.Object, rootOf("")))
	case !isUser:
		return true
	case !p.was(workload.IAMUsers(), "/"+user):
		return false
	case t.Relation == "member":
		return slices.ContainsFunc(slices.Collect(maps.Values(p.members)), func(users map[string]bool) bool { return users[user] })
	}
	for target, grants := range p.granted {
		if !strings.HasSuffix(t.Object, "/"+hashOf(target)) {
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
