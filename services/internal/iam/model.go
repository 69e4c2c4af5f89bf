package iam

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/proto"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// Module names IAM's part of a model.
const Module = "iam"

// Room bounds the number and the encoded size of the types in IAM's part of a model.
type Room struct{ Types, Bytes int }

// Within returns the registry of the ProtectedResources that fit into the model. It tries them in the order of their
// claims and leaves out each that does not fit beside those before it. Later, smaller ones may still fit. Earlier
// findings about room do not count.
func Within(resources []*iamv1alpha1.ProtectedResource, room Room) *Registry {
	var in, out []*iamv1alpha1.ProtectedResource
	rest := rankResources(resources)
	by := readReservations(rest)
	for n := len(rest); len(rest) > 0; n = min(n, len(rest)) {
		switch all := slices.Concat(in, rest[:n]); {
		case registerAll(all, by).hasRoom(room):
			in, rest, n = all, rest[n:], 2*n
		case n > 1:
			n /= 2
		default:
			out, rest = append(out, rest[0]), rest[1:]
		}
	}
	r := registerAll(in, by)
	r.leaveOut(out)
	return r
}

// InForce returns the registry of the ProtectedResources with a recorded registration for their kind, including those
// edited since.
func InForce(resources []*iamv1alpha1.ProtectedResource) *Registry {
	return registryBefore(unregistered, resources)
}

// Unchanged returns the registry of the ProtectedResources whose recorded registration has their current generation.
func Unchanged(resources []*iamv1alpha1.ProtectedResource) *Registry {
	return registryBefore(edited, resources)
}

func registryBefore(rank int, resources []*iamv1alpha1.ProtectedResource) *Registry {
	all := rankResources(resources)
	by := readReservations(all)
	return registerAll(slices.DeleteFunc(all, func(p *iamv1alpha1.ProtectedResource) bool { return registrationRank(p) >= rank }), by)
}

func (r *Registry) hasRoom(room Room) bool {
	if len(r.Kinds()) > room.Types {
		return false
	}
	types := r.Types()
	return len(types) <= room.Types && Size(types) <= room.Bytes
}

// Size returns the encoded size of types in a model, in bytes.
func Size(types []*openfgav1.TypeDefinition) int {
	return proto.Size(&openfgav1.AuthorizationModel{TypeDefinitions: types})
}

// Digest returns a hash of types. Equal types give equal digests.
func Digest(types []*openfgav1.TypeDefinition) string {
	encoded, _ := proto.MarshalOptions{Deterministic: true}.Marshal(&openfgav1.AuthorizationModel{TypeDefinitions: types})
	return fmt.Sprintf("%x", sha256.Sum256(encoded))
}

// Types returns IAM's part of a model, ordered by type name. Equal registries give equal bytes under deterministic
// marshalling.
func (r *Registry) Types() []*openfgav1.TypeDefinition {
	all := slices.Sorted(maps.Keys(r.relations))
	role, grant, root := newType(RoleType), newType(GrantType), newType(RootType)
	grant.addDirect(roleRelation, typeReference(RoleType))
	grant.addDirect(subjectRelation, typeReference(UserType), membersReference(GroupType), membersReference(TokenGroupType))
	root.addDirect(grantRelation, typeReference(GrantType))
	for _, relation := range all {
		role.addDirect(relation, wildcardReference())
		grant.addComputed(relation, intersectionOf(computedUserset(subjectRelation), tupleToUserset(relation, roleRelation)))
		root.addComputed(relation, tupleToUserset(relation, grantRelation))
	}
	group, tokenGroup := newType(GroupType), newType(TokenGroupType)
	group.addDirect(memberRelation, typeReference(UserType))
	tokenGroup.addDirect(memberRelation, typeReference(UserType))
	types := []*openfgav1.TypeDefinition{
		newType(UserType).definition, group.definition, tokenGroup.definition, role.definition, grant.definition, root.definition,
	}
	for _, k := range r.Kinds() {
		types = append(types, k.typeDefinition())
	}
	slices.SortFunc(types, func(a, b *openfgav1.TypeDefinition) int { return strings.Compare(a.GetType(), b.GetType()) })
	return types
}

// typeDefinition returns the type definition of a kind. A permission comes from a grant on the object, on the root of the
// kind, or on a parent.
func (k *Kind) typeDefinition() *openfgav1.TypeDefinition {
	t := newType(k.Type)
	t.addDirect(grantRelation, typeReference(GrantType))
	t.addDirect(rootRelation, typeReference(RootType))
	if len(k.Parents) > 0 {
		var parents []*openfgav1.RelationReference
		for _, parent := range k.Parents {
			parents = append(parents, typeReference(parent.Type))
		}
		slices.SortFunc(parents, func(a, b *openfgav1.RelationReference) int { return strings.Compare(a.GetType(), b.GetType()) })
		t.addDirect(parentRelation, parents...)
	}
	for _, permission := range k.AtAndBelow() {
		relation := Relation(permission)
		ways := []*openfgav1.Userset{tupleToUserset(relation, grantRelation), tupleToUserset(relation, rootRelation)}
		if len(k.Parents) > 0 {
			ways = append(ways, tupleToUserset(relation, parentRelation))
		}
		t.addComputed(relation, unionOf(ways...))
	}
	return t.definition
}
