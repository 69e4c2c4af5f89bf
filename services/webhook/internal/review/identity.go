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

// Values of [TrustRules.Subject]: the UID of the authenticator, or the name if the user has no UID.
const (
	ByUID       = "uid"
	ByUIDOrName = "uid-or-name"
)

// TrustRules defines which parts of a request are trusted. Make it with [NewTrustRules].
type TrustRules struct {
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
	// clusterScoped reports, for each type of IAM, whether its objects are outside namespaces.
	clusterScoped map[string]bool
}

// NewTrustRules returns a copy of r with the scopes of IAM types filled in.
func NewTrustRules(r TrustRules) *TrustRules {
	r.clusterScoped = map[string]bool{}
	for _, k := range kinds.IAMKinds() {
		r.clusterScoped[iam.OpenFGAType(k.Group, k.Kind)] = k.ClusterScoped
	}
	return &r
}

// isClusterScopedType reports whether objects of a type are always outside namespaces, whatever a request contains.
func (r *TrustRules) isClusterScopedType(typ string) bool {
	global, _ := r.typeScope(typ)
	return global || typ == namespace
}

// isFollowedType reports whether all objects of a type are followed.
func (r *TrustRules) isFollowedType(typ string) bool {
	_, followed := r.typeScope(typ)
	return followed
}

// IsNamespacedType reports whether a type is followed and its objects are in namespaces.
func (r *TrustRules) IsNamespacedType(typ string) bool {
	return r.isFollowedType(typ) && !r.isClusterScopedType(typ)
}

// typeScope reports whether objects of a type are outside namespaces. known is true only for types that are followed.
func (r *TrustRules) typeScope(typ string) (global, known bool) {
	if global, known = r.clusterScoped[typ]; !known && r.Namespaced != nil {
		namespaced, followed := r.Namespaced(typ)
		return followed && !namespaced, followed
	}
	return global, known
}

// IdentifySubject returns the subject of an authenticated user. A user that is neither a User nor a service account keeps only
// groups of the system.
func (r *TrustRules) IdentifySubject(u authenticationv1.UserInfo) authz.Subject {
	s := authz.Subject{Groups: r.EffectiveGroups(u.Groups)}
	switch ofSystem := isSystemName(u.Username); {
	case u.UID != "" && (strings.HasPrefix(u.Username, "system:serviceaccount:") || !ofSystem && r.isAccountName(u.Username)):
		s.Account = u.UID
	case u.UID != "" && !ofSystem:
		s.User = u.UID
	case u.UID == "" && !ofSystem && r.Subject == ByUIDOrName && u.Username != "":
		s.User = u.Username
	default:
		s.Groups = withoutMatching(s.Groups, func(g string) bool { return !isSystemName(g) })
	}
	return s
}

// CompileAccountNames compiles an expression of whole user names; nil for an empty one.
func CompileAccountNames(expression string) (*regexp.Regexp, error) {
	if expression == "" {
		return nil, nil //nolint:nilnil // No expression matches no name.
	}
	return regexp.Compile("^(?:" + expression + ")$")
}

func (r *TrustRules) isAccountName(name string) bool {
	return r.Accounts != nil && r.Accounts.MatchString(name)
}

// EffectiveGroups returns the groups that count. Groups of unauthenticated users count only with Anonymous.
func (r *TrustRules) EffectiveGroups(all []string) []string {
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
