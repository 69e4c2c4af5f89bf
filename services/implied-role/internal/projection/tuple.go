package projection

import (
	"net/url"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
)

// Roles says how a model calls roles and who has them.
type Roles struct{ Type, Relation string }

// ParseRoles reads "role#assignee".
func ParseRoles(text string) (r Roles, ok bool) {
	r.Type, r.Relation, ok = strings.Cut(text, "#")
	return r, ok && r.Type != "" && r.Relation != "" && !strings.ContainsAny(text, ": @") && strings.Count(text, "#") == 1
}

// maxObject is how long OpenFGA lets the name of an object be.
const maxObject = 256

// link says in OpenFGA that whoever has the parent has the child. Both are objects.
type link struct{ parent, child string }

// links are the tuples of a namespace, one for each pair of roles that a rule names. Rules with names
// that are too long for OpenFGA have none.
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

// object is role:<namespace>/<name>, or role:<namespace>/ClusterRole/<name>, with what OpenFGA
// does not allow in a name escaped as in URLs: no role has % or / in its name.
func (r Roles) object(namespace string, role infer.Role) string {
	id := namespace + "/"
	if role.Cluster {
		id += infer.KindClusterRole + "/"
	}
	return r.Type + ":" + id + url.QueryEscape(role.Name)
}

// tuple is the link as OpenFGA has it.
func (r Roles) tuple(l link) *openfgav1.TupleKey {
	return &openfgav1.TupleKey{Object: l.child, Relation: r.Relation, User: l.parent + "#" + r.Relation}
}

// parse reads a tuple that is ours: it leads from a role of a namespace to another of the same one.
func (r Roles) parse(t *openfgav1.TupleKey) (namespace string, l link, ours bool) {
	parent, found := strings.CutSuffix(t.GetUser(), "#"+r.Relation)
	of, isParent := r.namespace(parent)
	namespace, isChild := r.namespace(t.GetObject())
	ours = found && isParent && isChild && of == namespace && t.GetRelation() == r.Relation && t.GetCondition() == nil
	return namespace, link{parent, t.GetObject()}, ours
}

// namespace is that of a role that was named by us.
func (r Roles) namespace(object string) (namespace string, ok bool) {
	id, ok := strings.CutPrefix(object, r.Type+":")
	namespace, role, found := strings.Cut(id, "/")
	return namespace, ok && found && namespace != "" && role != ""
}
