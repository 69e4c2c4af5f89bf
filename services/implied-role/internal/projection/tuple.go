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

// links returns one link per pair of roles that an accepted rule names. It counts pairs whose names are too long for
// OpenFGA, and leaves them out.
func (r Roles) links(namespace string, rules *infer.RuleSet) (links map[link]struct{}, tooLong int) {
	links = map[link]struct{}{}
	for parent := range rules.Parents() {
		for _, child := range rules.Direct(parent) {
			l := link{r.object(namespace, parent), r.object(namespace, child)}
			if len(l.parent) > maxObject || len(l.child) > maxObject {
				tooLong++
				continue
			}
			links[l] = struct{}{}
		}
	}
	return links, tooLong
}

// object returns role:<namespace>/<name>, or role:<namespace>/ClusterRole/<name>. Characters that OpenFGA does not
// allow are escaped as in URLs. Names of roles contain neither % nor /, so the result is unique.
func (r Roles) object(namespace string, role infer.Role) string {
	id := namespace + "/"
	if role.Cluster {
		id += infer.KindClusterRole + "/"
	}
	return r.Type + ":" + id + url.QueryEscape(role.Name)
}

// tuple returns the tuple of a link.
func (r Roles) tuple(l link) *openfgav1.TupleKey {
	return &openfgav1.TupleKey{Object: l.child, Relation: r.Relation, User: l.parent + "#" + r.Relation}
}

// parse returns the link of a tuple, and reports whether the projection owns it. It owns tuples without a condition
// between two roles of one namespace.
func (r Roles) parse(t *openfgav1.TupleKey) (namespace string, l link, ours bool) {
	parent, found := strings.CutSuffix(t.GetUser(), "#"+r.Relation)
	of, isParent := r.namespace(parent)
	namespace, isChild := r.namespace(t.GetObject())
	ours = found && isParent && isChild && of == namespace && t.GetRelation() == r.Relation && t.GetCondition() == nil
	return namespace, link{parent, t.GetObject()}, ours
}

// namespace returns the namespace of an object, and reports whether [Roles.object] can have made it.
func (r Roles) namespace(object string) (namespace string, ok bool) {
	id, ok := strings.CutPrefix(object, r.Type+":")
	namespace, role, found := strings.Cut(id, "/")
	return namespace, ok && found && namespace != "" && role != ""
}
