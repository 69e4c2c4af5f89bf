package review

import (
	"regexp"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/entail-dev/entail/services/internal/decide"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// What names a User: the UID that the authenticator gives, or the name of who has none.
const (
	ByUID       = "uid"
	ByUIDOrName = "uid-or-name"
)

// Rules say what is believed of a request. Make them with [NewRules].
type Rules struct {
	// Subject is [ByUID] or [ByUIDOrName].
	Subject string
	// Accounts matches the names of callers who are ServiceAccounts beside those of the core API; nil if there are none.
	Accounts *regexp.Regexp
	// Anonymous says that bindings may be for everybody, whoever they are.
	Anonymous bool
	// TrustParents says that what an object is of is believed to a request, where nothing is known of the object.
	TrustParents bool
	// Namespaced says of a kind whose objects are known because it is registered whether these are in namespaces; nil if there is none.
	Namespaced func(typ string) (namespaced, known bool)
	// global says of each type all of whose objects are known whether these are in no namespace.
	global map[string]bool
}

// NewRules completes rules.
func NewRules(r Rules) *Rules {
	r.global = map[string]bool{}
	for _, k := range kinds.IAM() {
		r.global[iam.Type(k.Group, k.Kind)] = k.Global
	}
	return &r
}

// isGlobal says whether objects of a type are known to be in no namespace, whatever a request says.
func (r *Rules) isGlobal(typ string) bool {
	global, _ := r.scope(typ)
	return global || typ == namespace
}

// follow says whether all objects of a type are known.
func (r *Rules) follow(typ string) bool {
	_, followed := r.scope(typ)
	return followed
}

// InNamespaces says whether objects of a type are known to be in namespaces.
func (r *Rules) InNamespaces(typ string) bool { return r.follow(typ) && !r.isGlobal(typ) }

// scope says of a type all of whose objects are known whether these are in no namespace.
func (r *Rules) scope(typ string) (global, known bool) {
	if global, known = r.global[typ]; !known && r.Namespaced != nil {
		namespaced, followed := r.Namespaced(typ)
		return followed && !namespaced, followed
	}
	return global, known
}

// Identify finds whom an authenticated user is. Of who is neither a User nor an account, only groups of the system count.
func (r *Rules) Identify(u authenticationv1.UserInfo) decide.Subject {
	s := decide.Subject{Groups: r.Groups(u.Groups)}
	switch ofSystem := isOfSystem(u.Username); {
	case u.UID != "" && (strings.HasPrefix(u.Username, "system:serviceaccount:") || !ofSystem && r.isAccount(u.Username)):
		s.Account = u.UID
	case u.UID != "" && !ofSystem:
		s.User = u.UID
	case u.UID == "" && !ofSystem && r.Subject == ByUIDOrName && u.Username != "":
		s.User = u.Username
	default:
		s.Groups = without(s.Groups, func(g string) bool { return !isOfSystem(g) })
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

// Groups are those that count.
func (r *Rules) Groups(all []string) []string {
	if r.Anonymous {
		return all
	}
	return without(all, func(g string) bool { return g == "system:unauthenticated" || g == "system:anonymous" })
}

// without leaves what it is given as it is.
func without(all []string, drop func(string) bool) []string {
	if !slices.ContainsFunc(all, drop) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), drop)
}
