package iam

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// maxObject is the longest name of an object that OpenFGA takes, with its type.
const maxObject = 256

// object names an object of OpenFGA. Equal parts give equal names, others give others: what a part of an id may not hold is
// written as %HH, and what is too long is hashed.
func object(typ string, parts ...string) string {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = escape(part)
	}
	id := strings.Join(escaped, "/")
	if name := typ + ":" + id; len(name) <= maxObject {
		return name
	}
	sum := sha256.Sum256([]byte(id))
	return typ + ":%-" + hex.EncodeToString(sum[:]) // Nothing that is escaped begins so.
}

func escape(part string) string {
	if !strings.ContainsFunc(part, odd) {
		return part
	}
	var b strings.Builder
	for i := range len(part) {
		if c := part[i]; odd(rune(c)) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func odd(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
}

// Type is that of the objects of a kind.
func Type(apiGroup, kind string) string { return Group(apiGroup) + "/" + kind }

// Object is one of a kind. The namespace is empty if the kind has none.
func Object(typ, namespace, name string) string {
	if namespace != "" {
		return object(typ, namespace, name)
	}
	return object(typ, name)
}

// TypeOf is the type of an object.
func TypeOf(object string) string {
	typ, _, _ := strings.Cut(object, ":")
	return typ
}

// Root stands for all objects of a type.
func Root(typ string) string { return object(RootType, strings.Split(typ, "/")...) }

// User is the subject that a User of that name is.
func User(name string) string { return object(UserType, "u", name) }

// ServiceAccount is the subject that an account with that UID is.
func ServiceAccount(uid string) string { return object(UserType, "sa", uid) }

// RoleObject stands for a Role.
func RoleObject(r *iamv1alpha1.Role) string { return object(RoleType, string(r.UID)) }

// GroupObject stands for a Group.
func GroupObject(g *iamv1alpha1.Group) string { return object(GroupType, string(g.UID)) }

// TokenGroup stands for a group that the authenticator gives.
func TokenGroup(name string) string { return object(TokenGroupType, name) }

// Grant stands for a role on a target.
func Grant(r *iamv1alpha1.Role, target string) string {
	return object(GrantType, string(r.UID), hashed(target))
}

func hashed(target string) string {
	sum := sha256.Sum256([]byte(target))
	return hex.EncodeToString(sum[:])
}
