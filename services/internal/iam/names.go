package iam

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Types of the model that do not represent a registered kind.
const (
	UserType       = "iam.miloapis.com/InternalUser"
	GroupType      = "iam.miloapis.com/InternalUserGroup"
	TokenGroupType = "iam.miloapis.com/InternalTokenGroup" //nolint:gosec // No credential.
	RoleType       = "iam.miloapis.com/InternalRole"
	GrantType      = "iam.miloapis.com/RoleBinding"
	RootType       = "iam.miloapis.com/Root"
)

// Relations that do not represent a permission. Their names are short, because a model repeats them for every
// permission of every kind.
const (
	memberRelation  = "member"
	grantRelation   = "b"
	rootRelation    = "k"
	parentRelation  = "p"
	roleRelation    = "r"
	subjectRelation = "u"
)

// maxType bounds a type name in bytes. It leaves room for a hashed object ID within [maxObject].
const maxType = 180

var (
	groupName       = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)
	kindName        = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
	pluralName      = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	subresourceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	verbName        = regexp.MustCompile(`^[a-z][-a-z0-9]*$`)
)

// reservedTypes lists the types that no registered kind may use.
func reservedTypes() []string {
	return []string{UserType, GroupType, TokenGroupType, RoleType, GrantType, RootType}
}

// IsIAMType reports whether a type of the IAM store belongs to IAM. In other stores, modules may use such names.
func IsIAMType(typ string) bool { return strings.Contains(typ, "/") }

// IsIAMObject reports whether the type of an object belongs to IAM. See [IsIAMType].
func IsIAMObject(object string) bool { return IsIAMType(TypeOfObject(object)) }

// invalidNameReason returns the reason why a kind cannot be registered with its names, or "".
func invalidNameReason(spec *iamv1alpha1.ProtectedResourceSpec) string {
	typ := OpenFGAType(spec.ServiceRef.Name, spec.Kind)
	for _, name := range []struct {
		field, value string
		pattern      *regexp.Regexp
	}{
		{"serviceRef.name", APIGroupName(spec.ServiceRef.Name), groupName}, {"kind", spec.Kind, kindName}, {"plural", spec.Plural, pluralName},
	} {
		if !name.pattern.MatchString(name.value) {
			return fmt.Sprintf("%s %.100q cannot be one: it must match %s", name.field, name.value, name.pattern)
		}
	}
	if len(typ) > maxType {
		return fmt.Sprintf("serviceRef.name and kind have %d characters together, of at most %d", len(typ)-1, maxType-1)
	}
	if slices.Contains(reservedTypes(), typ) {
		return typ + " is a type that the model needs for itself: no kind can have this name"
	}
	return pluralMismatchReason(spec)
}

// pluralMismatchReason returns an error text if a spec has the kind name or the plural of an IAM kind, but not both. A
// role on objects of one kind would then apply to objects of another. For other kinds, the watcher reports the real
// names.
func pluralMismatchReason(spec *iamv1alpha1.ProtectedResourceSpec) string {
	for _, k := range kinds.IAMKinds() {
		if spec.ServiceRef.Name == k.Group && (spec.Kind == k.Kind) != (spec.Plural == k.Resource) {
			return fmt.Sprintf("plural %q of %s belongs to kind %s only; correct spec.kind or spec.plural", k.Resource, k.Group, k.Kind)
		}
	}
	return ""
}
