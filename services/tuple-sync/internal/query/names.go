package query

import (
	"context"
	"maps"
	"slices"
	"strings"

	fgatuple "github.com/openfga/openfga/pkg/tuple"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/nearest"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
)

// checkQuestionNames returns an error for the caller about the first name in a question that the model does not define.
func checkQuestionNames(m *plan.Model, r *tuplev1.CheckRequest) error {
	if err := checkKeyNames(m, r.GetKey()); err != nil {
		return err
	}
	return checkContextualNames(m, r.GetContextualTuples())
}

func checkListObjectsNames(m *plan.Model, r *tuplev1.ListObjectsRequest) error {
	if err := checkRelationName(m, r.GetType(), r.GetRelation()); err != nil {
		return err
	}
	if err := checkUserNames(m, r.GetUser()); err != nil {
		return err
	}
	return checkContextualNames(m, r.GetContextualTuples())
}

func checkListUsersNames(m *plan.Model, r *tuplev1.ListUsersRequest) error {
	if err := checkObjectNames(m, r.GetObject(), r.GetRelation()); err != nil {
		return err
	}
	typ, relation, isUserset := strings.Cut(r.GetUserType(), "#")
	if err := checkTypeName(m, typ); err != nil {
		return err
	}
	if isUserset {
		if err := checkRelationName(m, typ, relation); err != nil {
			return err
		}
	}
	return checkContextualNames(m, r.GetContextualTuples())
}

// checkTupleFilter returns an error for the caller about the first name in a filter that the model or the cluster lacks. It is
// only called for an answer without tuples, because objects may declare tuples with names that the model lacks.
func (s *Server) checkTupleFilter(ctx context.Context, r *tuplev1.ListTuplesRequest, ownerKind, ownerName string) error {
	if err := s.checkOwner(r.GetStore(), ownerKind, ownerName); err != nil {
		return err
	}
	model, err := s.modelIfAny(ctx, r.GetStore())
	if err != nil || model == nil {
		return err
	}
	if object := r.GetObject(); object != "" && fgatuple.IsValidObject(object) {
		if err := checkTypeName(model, fgatuple.GetType(object)); err != nil {
			return err
		}
		if r.GetRelation() != "" {
			return checkRelationName(model, fgatuple.GetType(object), r.GetRelation())
		}
	}
	if user := r.GetUser(); user != "" {
		if err := checkUserNames(model, user); err != nil {
			return err
		}
	}
	return checkAnyRelationName(model, r.GetRelation())
}

// checkAnyRelationName returns an error for the caller if no type has the relation.
func checkAnyRelationName(m *plan.Model, name string) error {
	known := map[string]bool{}
	for _, relations := range m.Types().GetAllRelations() {
		for relation := range relations {
			known[relation] = true
		}
	}
	if name == "" || known[name] {
		return nil
	}
	return rpc.NotFoundError("no type has a relation %q%s", name, nearest.Hint(name, "relations", slices.Collect(maps.Keys(known))))
}

// checkOwner returns an error for the caller if the object that should declare tuples does not exist.
func (s *Server) checkOwner(store, kind, name string) error {
	var known []string
	switch {
	case kind == "" && name == "":
		return nil
	case strings.EqualFold(kind, kinds.Stores().Kind):
		known = []string{store}
	case strings.EqualFold(kind, kinds.AuthorizationModels().Kind):
		for _, o := range s.cfg.State.Models.All() {
			if o.Value.Spec.StoreRef.Name == store {
				known = append(known, o.Key.Name)
			}
		}
	default:
		return rpc.NotFoundError("no object of kind %q declares tuples; the kinds are store, authorizationmodel", kind)
	}
	if slices.Contains(known, name) {
		return nil
	}
	return rpc.NotFoundError("no %s %q declares tuples of Store %q%s", strings.ToLower(kind), name, store, nearest.Hint(name, "names", known))
}

// checkTupleName returns an error for the caller about the first name in a tuple that the model lacks.
func (s *Server) checkTupleName(ctx context.Context, store string, key *tuplev1.TupleKey) error {
	model, err := s.modelIfAny(ctx, store)
	if err != nil || model == nil {
		return err
	}
	return checkKeyNames(model, key)
}

// modelIfAny returns the model of a Store, or nil while the Store has none.
func (s *Server) modelIfAny(ctx context.Context, store string) (*plan.Model, error) {
	found, err := s.findStore(ctx, store)
	if err != nil || found.Value.Status.AuthorizationModelID == "" {
		return nil, err
	}
	return s.cfg.Models.Get(ctx, found.Value.Status.StoreID, found.Value.Status.AuthorizationModelID)
}

func checkContextualNames(m *plan.Model, keys []*tuplev1.TupleKey) error {
	for _, key := range keys {
		if err := checkKeyNames(m, key); err != nil {
			return err
		}
		if err := checkConditionName(m, key.GetCondition()); err != nil {
			return err
		}
	}
	return nil
}

func checkConditionName(m *plan.Model, c *tuplev1.Condition) error {
	if _, ok := m.Types().GetCondition(c.GetName()); ok || c == nil {
		return nil
	}
	known := slices.Collect(maps.Keys(m.Types().GetConditions()))
	return rpc.NotFoundError("the model has no condition %q%s", c.GetName(), nearest.Hint(c.GetName(), "conditions", known))
}

func checkKeyNames(m *plan.Model, key *tuplev1.TupleKey) error {
	if err := checkObjectNames(m, key.GetObject(), key.GetRelation()); err != nil {
		return err
	}
	return checkUserNames(m, key.GetUser())
}

func checkObjectNames(m *plan.Model, object, relation string) error {
	if !fgatuple.IsValidObject(object) {
		return rpc.InvalidError("object %q is not TYPE:ID, such as document:roadmap", object)
	}
	return checkRelationName(m, fgatuple.GetType(object), relation)
}

// checkUserNames checks the names in a user: TYPE:ID, TYPE:ID#RELATION or TYPE:*.
func checkUserNames(m *plan.Model, user string) error {
	object, relation := fgatuple.SplitObjectRelation(user)
	if !fgatuple.IsValidObject(object) {
		hint := ", such as user:beth"
		if _, isType := m.Types().GetTypeDefinition("user"); isType && fgatuple.IsValidObject("user:"+user) {
			hint = "; did you mean user:" + user + "?"
		}
		return rpc.InvalidError("user %q is not TYPE:ID, TYPE:ID#RELATION or TYPE:*%s", user, hint)
	}
	if relation != "" {
		return checkRelationName(m, fgatuple.GetType(object), relation)
	}
	return checkTypeName(m, fgatuple.GetType(object))
}

func checkTypeName(m *plan.Model, name string) error {
	if _, ok := m.Types().GetTypeDefinition(name); ok {
		return nil
	}
	known := slices.Collect(maps.Keys(m.Types().GetAllRelations()))
	return rpc.NotFoundError("the model has no type %q%s", name, nearest.Hint(name, "types", known))
}

func checkRelationName(m *plan.Model, typ, name string) error {
	if err := checkTypeName(m, typ); err != nil {
		return err
	}
	relations, _ := m.Types().GetRelations(typ) // It fails only for unknown types.
	if _, ok := relations[name]; ok {
		return nil
	}
	return rpc.NotFoundError("type %s has no relation %q%s", typ, name, nearest.Hint(name, "relations", slices.Collect(maps.Keys(relations))))
}
