package iam

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// maxObject bounds an OpenFGA object name including its type, in bytes.
const maxObject = 256

// escapedObjectName returns the name of an OpenFGA object. Different parts give different names. Characters outside
// [a-zA-Z0-9._-] are written as %HH. An ID that is too long is hashed.
func escapedObjectName(typ string, parts ...string) string {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = escapeIDPart(part)
	}
	id := strings.Join(escaped, "/")
	if name := typ + ":" + id; len(name) <= maxObject {
		return name
	}
	sum := sha256.Sum256([]byte(id))
	return typ + ":%-" + hex.EncodeToString(sum[:]) // No escaped ID begins with "%-".
}

func escapeIDPart(part string) string {
	if !strings.ContainsFunc(part, needsEscape) {
		return part
	}
	var b strings.Builder
	for i := range len(part) {
		if c := part[i]; needsEscape(rune(c)) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func needsEscape(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
}

// OpenFGAType returns the OpenFGA type for the objects of a kind.
func OpenFGAType(apiGroup, kind string) string { return APIGroupName(apiGroup) + "/" + kind }

// OpenFGAObject returns the OpenFGA name of a Kubernetes object. The namespace is empty for a cluster-scoped kind.
func OpenFGAObject(typ, namespace, name string) string {
	if namespace != "" {
		return escapedObjectName(typ, namespace, name)
	}
	return escapedObjectName(typ, name)
}

// TypeOfObject returns the type in an object name.
func TypeOfObject(object string) string {
	typ, _, _ := strings.Cut(object, ":")
	return typ
}

// RootObject returns the OpenFGA object that stands for all objects of a type.
func RootObject(typ string) string { return escapedObjectName(RootType, strings.Split(typ, "/")...) }

// UserSubject returns the OpenFGA subject of the User with this name.
func UserSubject(name string) string { return escapedObjectName(UserType, "u", name) }

// ServiceAccountSubject returns the OpenFGA subject of the service account with this UID.
func ServiceAccountSubject(uid string) string { return escapedObjectName(UserType, "sa", uid) }

// RoleObject returns the OpenFGA object of a Role. Its ID is the Role's UID.
func RoleObject(r *iamv1alpha1.Role) string { return escapedObjectName(RoleType, string(r.UID)) }

// GroupObject returns the OpenFGA object of a Group. Its ID is the Group's UID.
func GroupObject(g *iamv1alpha1.Group) string { return escapedObjectName(GroupType, string(g.UID)) }

// TokenGroupObject returns the OpenFGA object of a group that the authenticator reports.
func TokenGroupObject(name string) string { return escapedObjectName(TokenGroupType, name) }

// GrantObject returns the OpenFGA object that links a role to its subjects on a target.
func GrantObject(r *iamv1alpha1.Role, target string) string {
	return escapedObjectName(GrantType, string(r.UID), hashTarget(target))
}

func hashTarget(target string) string {
	sum := sha256.Sum256([]byte(target))
	return hex.EncodeToString(sum[:])
}
