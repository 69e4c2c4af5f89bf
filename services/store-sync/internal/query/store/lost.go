package store

import (
	"cmp"
	"slices"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"
	"google.golang.org/protobuf/types/known/structpb"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fga/validation"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// maxLostTuples bounds the lost tuples that a preview lists.
const maxLostTuples = 20

// addLostDefinitionsAndTuples adds the objects whose definitions are removed, and the tuples that the model before allows and the next one does not.
func addLostDefinitionsAndTuples(response *storev1.PreviewModelResponse, before plan.Input, after *openfgav1.AuthorizationModel) error {
	if before.Merged.Model == nil || !slices.ContainsFunc(response.GetChanges(), canInvalidateTuples) {
		return nil
	}
	for _, c := range response.GetChanges() {
		if c.GetKind() == storev1.ModelChange_KIND_REMOVED {
			c.Definition.Source = originOfDefinition(before.Merged, c.GetDefinition())
		}
	}
	was, err := typesystem.New(before.Merged.Model)
	if err != nil {
		return err
	}
	is, err := typesystem.New(after)
	if err != nil {
		return err
	}
	lost := lostTuples(before.Store.Spec.Tuples, "store/"+before.Key.Name, was, is)
	for _, m := range before.Modules {
		if m.Value.DeletionTimestamp == nil {
			lost = append(lost, lostTuples(m.Value.Spec.Tuples, "authorizationmodel/"+m.Key.Name, was, is)...)
		}
	}
	slices.SortFunc(lost, func(a, b *storev1.LostTuple) int {
		return cmp.Or(cmp.Compare(a.GetOwner(), b.GetOwner()), cmp.Compare(a.GetObject(), b.GetObject()),
			cmp.Compare(a.GetRelation(), b.GetRelation()), cmp.Compare(a.GetUser(), b.GetUser()))
	})
	response.LostTuples, response.LostTupleCount = lost[:min(len(lost), maxLostTuples)], int32(len(lost))
	return nil
}

// canInvalidateTuples reports whether a change can make a tuple invalid.
func canInvalidateTuples(c *storev1.ModelChange) bool {
	return c.GetKind() != storev1.ModelChange_KIND_ADDED
}

// originOfDefinition returns the object that a definition comes from.
func originOfDefinition(merged model.MergeResult, d *storev1.Definition) string {
	i := slices.IndexFunc(merged.Definitions, func(m model.Definition) bool {
		return m.Type == d.GetType() && m.Relation == d.GetRelation() && m.Condition == d.GetCondition()
	})
	if i < 0 {
		return ""
	}
	return merged.Definitions[i].Origin.String()
}

// lostTuples returns the tuples of an owner that a model allows and another one does not.
func lostTuples(declared []corev1alpha1.Tuple, owner string, was, is *typesystem.TypeSystem) []*storev1.LostTuple {
	var lost []*storev1.LostTuple
	for _, t := range declared {
		if key := toTupleKey(t); validation.CheckTuple(is, key) != nil && validation.CheckTuple(was, key) == nil {
			lost = append(lost, &storev1.LostTuple{Object: t.Object, Relation: t.Relation, User: t.User, Owner: owner})
		}
	}
	return lost
}

// toTupleKey converts a declared tuple to OpenFGA's form.
func toTupleKey(t corev1alpha1.Tuple) *openfgav1.TupleKey {
	key := &openfgav1.TupleKey{Object: t.Object, Relation: t.Relation, User: t.User}
	if t.Condition == nil {
		return key
	}
	key.Condition = &openfgav1.RelationshipCondition{Name: t.Condition.Name, Context: &structpb.Struct{}}
	if t.Condition.Context != nil {
		_ = key.GetCondition().GetContext().UnmarshalJSON(t.Condition.Context.Raw) // tuple-sync refuses other JSON.
	}
	return key
}
