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

// Module is the name of the OpenFGA module with IAM's types.
const Module = "iam"

// ModelBudget bounds the number and the encoded size of IAM's types in a model.
type ModelBudget struct{ Types, Bytes int }

// RegistryWithinBudget returns the registry of the ProtectedResources that fit into the model. It adds them in the
// order of rankLiveResources and skips each resource that does not fit. A later, smaller resource may still fit. It
// ignores the limit conditions in the statuses.
func RegistryWithinBudget(resources []*iamv1alpha1.ProtectedResource, room ModelBudget) *Registry {
	var in, out []*iamv1alpha1.ProtectedResource
	rest := rankLiveResources(resources)
	by := readReservations(rest)
	for n := len(rest); len(rest) > 0; n = min(n, len(rest)) {
		switch all := slices.Concat(in, rest[:n]); {
		case buildRegistry(all, by).isWithinBudget(room):
			in, rest, n = all, rest[n:], 2*n
		case n > 1:
			n /= 2
		default:
			out, rest = append(out, rest[0]), rest[1:]
		}
	}
	r := buildRegistry(in, by)
	r.addLimitFindings(out)
	return r
}

// RecordedRegistry returns the registry of the ProtectedResources whose status records a registration of their kind. A
// later change of the spec does not matter.
func RecordedRegistry(resources []*iamv1alpha1.ProtectedResource) *Registry {
	return registryBelowRank(unregisteredRank, resources)
}

// UnchangedRegistry returns the registry of the ProtectedResources whose status records a registration of their
// current generation.
func UnchangedRegistry(resources []*iamv1alpha1.ProtectedResource) *Registry {
	return registryBelowRank(editedRank, resources)
}

func registryBelowRank(rank int, resources []*iamv1alpha1.ProtectedResource) *Registry {
	all := rankLiveResources(resources)
	by := readReservations(all)
	return buildRegistry(slices.DeleteFunc(all, func(p *iamv1alpha1.ProtectedResource) bool { return registrationRank(p) >= rank }), by)
}

func (r *Registry) isWithinBudget(room ModelBudget) bool {
	if len(r.Kinds()) > room.Types {
		return false
	}
	types := r.TypeDefinitions()
	return len(types) <= room.Types && EncodedSize(types) <= room.Bytes
}

// EncodedSize returns the encoded size of types in a model, in bytes.
func EncodedSize(types []*openfgav1.TypeDefinition) int {
	return proto.Size(&openfgav1.AuthorizationModel{TypeDefinitions: types})
}

// TypesDigest returns a hash of types. Equal types give equal hashes.
func TypesDigest(types []*openfgav1.TypeDefinition) string {
	encoded, _ := proto.MarshalOptions{Deterministic: true}.Marshal(&openfgav1.AuthorizationModel{TypeDefinitions: types})
	return fmt.Sprintf("%x", sha256.Sum256(encoded))
}

// TypeDefinitions returns IAM's types of a model, ordered by name. Equal registries give equal bytes with
// deterministic marshalling.
func (r *Registry) TypeDefinitions() []*openfgav1.TypeDefinition {
	all := slices.Sorted(maps.Keys(r.relations))
	role, grant, root := newTypeBuilder(RoleType), newTypeBuilder(GrantType), newTypeBuilder(RootType)
	grant.addDirectRelation(roleRelation, typeReference(RoleType))
	grant.addDirectRelation(subjectRelation, typeReference(UserType), membersReference(GroupType), membersReference(TokenGroupType))
	root.addDirectRelation(grantRelation, typeReference(GrantType))
	for _, relation := range all {
		role.addDirectRelation(relation, wildcardReference())
		grant.addComputedRelation(relation, intersectionUserset(computedUserset(subjectRelation), tupleToUserset(relation, roleRelation)))
		root.addComputedRelation(relation, tupleToUserset(relation, grantRelation))
	}
	group, tokenGroup := newTypeBuilder(GroupType), newTypeBuilder(TokenGroupType)
	group.addDirectRelation(memberRelation, typeReference(UserType))
	tokenGroup.addDirectRelation(memberRelation, typeReference(UserType))
	types := []*openfgav1.TypeDefinition{
		newTypeBuilder(UserType).definition, group.definition, tokenGroup.definition, role.definition, grant.definition, root.definition,
	}
	for _, k := range r.Kinds() {
		types = append(types, k.typeDefinition())
	}
	slices.SortFunc(types, func(a, b *openfgav1.TypeDefinition) int { return strings.Compare(a.GetType(), b.GetType()) })
	return types
}

// typeDefinition returns the type definition of a kind. A permission comes from a grant on the object, on the root of
// the kind, or on a parent.
func (k *RegisteredKind) typeDefinition() *openfgav1.TypeDefinition {
	t := newTypeBuilder(k.Type)
	t.addDirectRelation(grantRelation, typeReference(GrantType))
	t.addDirectRelation(rootRelation, typeReference(RootType))
	if len(k.Parents) > 0 {
		var parents []*openfgav1.RelationReference
		for _, parent := range k.Parents {
			parents = append(parents, typeReference(parent.Type))
		}
		slices.SortFunc(parents, func(a, b *openfgav1.RelationReference) int { return strings.Compare(a.GetType(), b.GetType()) })
		t.addDirectRelation(parentRelation, parents...)
	}
	for _, permission := range k.GrantablePermissions() {
		relation := RelationOf(permission)
		ways := []*openfgav1.Userset{tupleToUserset(relation, grantRelation), tupleToUserset(relation, rootRelation)}
		if len(k.Parents) > 0 {
			ways = append(ways, tupleToUserset(relation, parentRelation))
		}
		t.addComputedRelation(relation, unionUserset(ways...))
	}
	return t.definition
}
