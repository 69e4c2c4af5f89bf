package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// APIResource describes one resource of an API server.
type APIResource struct {
	// Group is empty for the core group.
	Group, Plural, Singular string
	Namespaced              bool
}

// String returns the usual name of the resource, such as "widgets.example.com".
func (r APIResource) String() string {
	if r.Group == "" {
		return r.Plural
	}
	return r.Plural + "." + r.Group
}

// Compare orders resources by group, plural and singular.
func (r APIResource) Compare(o APIResource) int {
	return cmp.Or(cmp.Compare(r.Group, o.Group), cmp.Compare(r.Plural, o.Plural), cmp.Compare(r.Singular, o.Singular))
}

// maxName bounds the length of a relation's or a module's name in OpenFGA, maxType that of a type's name.
const (
	maxName = 50
	maxType = 254
)

// coreGroup stands for the group with the empty name.
const coreGroup = "core"

// GroupToken returns the group as names contain it, with _ for each dot. Where the longest relation,
// create_<token>_<plural>, would exceed 50 characters, the front of the group is cut off.
func GroupToken(group, plural string) (string, error) {
	token := strings.ReplaceAll(cmp.Or(group, coreGroup), ".", "_")
	surplus := len("create_"+token+"_"+plural) - maxName
	if surplus > len(token) {
		return "", fmt.Errorf("relation create_%s_%s would have %d characters, of at most %d, and the group is too short to be cut: "+
			"only a shorter plural helps", token, plural, surplus+maxName, maxName)
	}
	return token[max(surplus, 0):], nil
}

// identifier matches the names of OpenFGA's language, and also its reserved words.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// checkName returns an error if OpenFGA would refuse a name.
func checkName(what, name string, limit int) error {
	switch {
	case !identifier.MatchString(name), slices.Contains(reservedWords(), name):
		return fmt.Errorf("%s would be %.100q, which is not a name in OpenFGA's language", what, name)
	case len(name) > limit:
		return fmt.Errorf("%s would be %.100q, which has %d characters, of at most %d", what, name, len(name), limit)
	}
	return nil
}

// reservedWords returns the reserved words of OpenFGA's language.
func reservedWords() []string {
	return []string{"and", "condition", "define", "false", "from", "in", "null", "or", "relations", "self", "this", "true", "with"}
}
