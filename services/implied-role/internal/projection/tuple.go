package projection

import (
	"net/url"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
)

// RoleRelation holds the type of roles in a model, and the relation of a role to its holders.
type RoleRelation struct{ Type, Relation string }

// ParseRoleRelation parses a text such as "role#assignee".
func ParseRoleRelation(text string) (r RoleRelation, ok bool) {
	r.Type, r.Relation, ok = strings.Cut(text, "#")
	return r, ok && r.Type != "" && r.Relation != "" && !strings.ContainsAny(text, ": @") && strings.Count(text, "#") == 1
}

// maxObject bounds the length of an object in OpenFGA.
const maxObject = 256

// roleLink gives the child role to all holders of the parent role. Both are OpenFGA objects.
type roleLink struct{ parent, child string }

// roleLinks returns one link per pair of roles that an accepted rule names. It counts pairs whose names are too long for
// OpenFGA, and leaves them out.
func (r RoleRelation) roleLinks(namespace string, rules *infer.RuleSet) (links map[roleLink]struct{}, tooLong int) {
	links = map[roleLink]struct{}{}
	for parent := range rules.ParentRoles() {
		for _, child := range rules.DirectlyImpliedRoles(parent) {
			l := roleLink{r.objectName(namespace, parent), r.objectName(namespace, child)}
			if len(l.parent) > maxObject || len(l.child) > maxObject {
				tooLong++
				continue
			}
			links[l] = struct{}{}
		}
	}
	return links, tooLong
}

// objectName returns role:<namespace>/<name>, or role:<namespace>/ClusterRole/<name>. Characters that OpenFGA does not
// allow are escaped as in URLs. Names of roles contain neither % nor /, so the result is unique.
func (r RoleRelation) objectName(namespace string, role infer.Role) string {
	id := namespace + "/"
	if role.Cluster {
		id += infer.KindClusterRole + "/"
	}
	return r.Type + ":" + id + url.QueryEscape(role.Name)
}

// linkTuple returns the tuple of a link.
func (r RoleRelation) linkTuple(l roleLink) *openfgav1.TupleKey {
	return &openfgav1.TupleKey{Object: l.child, Relation: r.Relation, User: l.parent + "#" + r.Relation}
}

// parseTuple returns the link of a tuple, and reports whether the projection owns it. It owns tuples without a condition
// between two roles of one namespace.
func (r RoleRelation) parseTuple(t *openfgav1.TupleKey) (namespace string, l roleLink, ours bool) {
	parent, found := strings.CutSuffix(t.GetUser(), "#"+r.Relation)
	of, isParent := r.namespaceOfObject(parent)
	namespace, isChild := r.namespaceOfObject(t.GetObject())
	ours = found && isParent && isChild && of == namespace && t.GetRelation() == r.Relation && t.GetCondition() == nil
	return namespace, roleLink{parent, t.GetObject()}, ours
}

// namespaceOfObject returns the namespace of an object, and reports whether [RoleRelation.objectName] can have made it.
func (r RoleRelation) namespaceOfObject(object string) (namespace string, ok bool) {
	id, ok := strings.CutPrefix(object, r.Type+":")
	namespace, role, found := strings.Cut(id, "/")
	return namespace, ok && found && namespace != "" && role != ""
}
