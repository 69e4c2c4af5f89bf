package iam

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// relationBytes is the number of hash bytes in the name of a relation.
const relationBytes = 6

// APIGroupName returns the name of an API group in types and permissions. The core group gets a name that is not
// empty.
func APIGroupName(apiGroup string) string { return cmp.Or(apiGroup, iamv1alpha1.CoreGroup) }

// PermissionName returns the name of a permission, such as "compute.example.com/workloads/status.update". The
// subresource may be empty.
func PermissionName(apiGroup, plural, subresource, verb string) string {
	name := APIGroupName(apiGroup) + "/" + plural
	if subresource != "" {
		name += "/" + subresource
	}
	return name + "." + verb
}

// RelationOf returns the OpenFGA relation of a permission. Two permissions may have the same relation.
// [Registry.RelationOf] reports which permission the relation belongs to.
func RelationOf(permission string) string {
	sum := sha256.Sum256([]byte(permission))
	return hex.EncodeToString(sum[:relationBytes])
}

// specPermissions returns the permissions that a spec lists, and the invalid entries.
func specPermissions(spec *iamv1alpha1.ProtectedResourceSpec) (permissions, invalid []string) {
	add := func(subresource, verb string) {
		if verbName.MatchString(verb) && (subresource == "" || subresourceName.MatchString(subresource)) {
			permissions = append(permissions, PermissionName(spec.ServiceRef.Name, spec.Plural, subresource, verb))
		} else {
			invalid = append(invalid, strings.TrimPrefix(subresource+"."+verb, "."))
		}
	}
	for _, entry := range spec.Permissions {
		if at := strings.LastIndexByte(entry, '.'); at >= 0 {
			add(entry[:at], entry[at+1:])
		} else {
			add("", entry)
		}
	}
	for _, sub := range spec.Subresources {
		for _, verb := range sub.Permissions {
			add(sub.Name, verb)
		}
	}
	return permissions, invalid
}
