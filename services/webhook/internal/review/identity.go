package review

import (
	"regexp"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Values of [Rules.Subject]: the UID of the authenticator, or the name if the user has no UID.
const (
	ByUID       = "uid"
	ByUIDOrName = "uid-or-name"
)

// Rules defines which parts of a request are trusted. Make it with [NewRules].
type Rules struct {
	// Subject is [ByUID] or [ByUIDOrName].
	Subject string
	// Accounts matches the names of callers who are ServiceAccounts beside those of the core API; nil if there are none.
	Accounts *regexp.Regexp
	// Anonymous lets the groups of unauthenticated users count.
	Anonymous bool
	// TrustParents lets a request define the parent of its object if the object is unknown.
	TrustParents bool
	// Namespaced reports whether objects of a registered type are in namespaces. known is false for types that are not
	// followed. Nil means that no type is.
	Namespaced func(typ string) (namespaced, known bool)
	// global reports, for each type of IAM, whether its objects are outside namespaces.
	global map[string]bool
}

// NewRules returns a copy of r with the scopes of IAM types filled in.
func NewRules(r Rules) *Rules {
	r.global = map[string]bool{}
	for _, k := range kinds.IAM() {
		r.global[iam.Type(k.Group, k.Kind)] = k.Global
	}
	return &r
}

// isGlobal reports whether objects of a type are always outside namespaces, whatever a request contains.
func (r *Rules) isGlobal(typ string) bool {
	global, _ := r.scopeOf(typ)
	return global || typ == namespace
}

// areFollowed reports whether all objects of a type are followed.
func (r *Rules) areFollowed(typ string) bool {
	_, followed := r.scopeOf(typ)
	return followed
}

// InNamespaces reports whether a type is followed and its objects are in namespaces.
func (r *Rules) InNamespaces(typ string) bool { return r.areFollowed(typ) && !r.isGlobal(typ) }

// scopeOf reports whether objects of a type are outside namespaces. known is true only for types that are followed.
func (r *Rules) scopeOf(typ string) (global, known bool) {
	if global, known = r.global[typ]; !known && r.Namespaced != nil {
		namespaced, followed := r.Namespaced(typ)
		return followed && !namespaced, followed
	}
	return global, known
}

// Identify returns the subject of an authenticated user. A user that is neither a User nor a service account keeps only
// groups of the system.
func (r *Rules) Identify(u authenticationv1.UserInfo) authz.Subject {
	s := authz.Subject{Groups: r.Groups(u.Groups)}
	switch ofSystem := isOfSystem(u.Username); {
	case u.UID != "" && (strings.HasPrefix(u.Username, "system:serviceaccount:") || !ofSystem && r.isAccount(u.Username)):
		s.Account = u.UID
	case u.UID != "" && !ofSystem:
		s.User = u.UID
	case u.UID == "" && !ofSystem && r.Subject == ByUIDOrName && u.Username != "":
		s.User = u.Username
	default:
		s.Groups = withoutMatching(s.Groups, func(g string) bool { return !isOfSystem(g) })
	}
	return s
}

// AccountNames compiles an expression of whole user names; nil for an empty one.
func AccountNames(expression string) (*regexp.Regexp, error) {
	if expression == "" {
		return nil, nil //nolint:nilnil // No expression matches no name.
	}
	return regexp.Compile("^(?:" + expression + ")$")
}

func (r *Rules) isAccount(name string) bool { return r.Accounts != nil && r.Accounts.MatchString(name) }

// Groups returns the groups that count. Groups of unauthenticated users count only with Anonymous.
func (r *Rules) Groups(all []string) []string {
	if r.Anonymous {
		return all
	}
	return withoutMatching(all, func(g string) bool { return g == "system:unauthenticated" || g == "system:anonymous" })
}

// withoutMatching returns the elements for which drop returns false. It does not modify its argument.
func withoutMatching(all []string, drop func(string) bool) []string {
	if !slices.ContainsFunc(all, drop) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), drop)
}
