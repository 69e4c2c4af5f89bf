package projection

import (
	"net/url"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
)

// Roles holds the type of roles in a model, and the relation of a role to its holders.
type Roles struct{ Type, Relation string }

// ParseRoles parses a text such as "role#assignee".
func ParseRoles(text string) (r Roles, ok bool) {
	r.Type, r.Relation, ok = strings.Cut(text, "#")
	return r, ok && r.Type != "" && r.Relation != "" && !strings.ContainsAny(text, ": @") && strings.Count(text, "#") == 1
}

// maxObject bounds the length of an object in OpenFGA.
const maxObject = 256

// link gives the child role to all holders of the parent role. Both are OpenFGA objects.
type link struct{ parent, child string }

// linksOf returns one link per pair of roles that an accepted rule names. It counts pairs whose names are too long for
// OpenFGA, and leaves them out.
func (r Roles) linksOf(namespace string, rules *infer.RuleSet) (linksOf map[link]struct{}, tooLong int) {
	linksOf = map[link]struct{}{}
	for parent := range rules.Parents() {
		for _, child := range rules.Direct(parent) {
			l := link{r.objectName(namespace, parent), r.objectName(namespace, child)}
			if len(l.parent) > maxObject || len(l.child) > maxObject {
				tooLong++
				continue
			}
			linksOf[l] = struct{}{}
		}
	}
	return linksOf, tooLong
}

// objectName returns role:<namespace>/<name>, or role:<namespace>/ClusterRole/<name>. Characters that OpenFGA does not
// allow are escaped as in URLs. Names of roles contain neither % nor /, so the result is unique.
func (r Roles) objectName(namespace string, role infer.Role) string {
	id := namespace + "/"
	if role.Cluster {
		id += infer.KindClusterRole + "/"
	}
	return r.Type + ":" + id + url.QueryEscape(role.Name)
}

// linkTuple returns the tuple of a link.
func (r Roles) linkTuple(l link) *openfgav1.TupleKey {
	return &openfgav1.TupleKey{Object: l.child, Relation: r.Relation, User: l.parent + "#" + r.Relation}
}

// parseTuple returns the link of a tuple, and reports whether the projection owns it. It owns tuples without a condition
// between two roles of one namespace.
func (r Roles) parseTuple(t *openfgav1.TupleKey) (namespace string, l link, ours bool) {
	parent, found := strings.CutSuffix(t.GetUser(), "#"+r.Relation)
	of, isParent := r.namespaceOf(parent)
	namespace, isChild := r.namespaceOf(t.GetObject())
	ours = found && isParent && isChild && of == namespace && t.GetRelation() == r.Relation && t.GetCondition() == nil
	return namespace, link{parent, t.GetObject()}, ours
}

// namespaceOf returns the namespace of an object, and reports whether [Roles.objectName] can have made it.
func (r Roles) namespaceOf(object string) (namespaceOf string, ok bool) {
	id, ok := strings.CutPrefix(object, r.Type+":")
	namespaceOf, role, found := strings.Cut(id, "/")
	return namespaceOf, ok && found && namespaceOf != "" && role != ""
}
