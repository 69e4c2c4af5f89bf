package decision

import (
	"context"
	"fmt"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	fgatuple "github.com/openfga/openfga/pkg/tuple"
	"github.com/openfga/openfga/pkg/typesystem"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/entail-dev/entail/services/internal/fga/validation"
)

// Bounds of one tree.
const (
	// maxSteps bounds the relations and tuples that are evaluated, and maxNodes all steps. A step that needs no evaluation costs
	// memory too.
	maxSteps = 2000
	maxNodes = 10 * maxSteps
	maxReads = 500
	// maxTuples bounds the tuples that are read. One read can return a thousand.
	maxTuples = 50_000
	// maxDepth bounds the relations on one path. OpenFGA follows 25 tuples.
	maxDepth = 200
)

// tooLarge is the reason of a step that is left out.
const tooLarge = "left out: the tree is too large"

// Reader reads tuples.
type Reader interface {
	// ReadRelation returns the tuples of an object's relation; with a user, only the tuple of that user. more reports
	// that some were left out.
	ReadRelation(ctx context.Context, object, relation, user string) (tuples []*openfgav1.TupleKey, more bool, err error)
}

// Question holds the arguments of a check. The model must define its names.
type Question struct {
	Object, Relation, User string
	// Context holds parameters of conditions.
	Context *structpb.Struct
}

// Explain returns the tree of the decision. It returns an error if the reader fails or ctx ends. truncated reports
// whether steps were left out.
func Explain(ctx context.Context, types *typesystem.TypeSystem, reader Reader, q Question) (tree *Step, truncated bool, err error) {
	e := &evaluator{
		types: types, reader: reader, question: q, path: map[string]int{}, done: map[string]*Step{},
		userType: fgatuple.GetType(q.User), isUserset: fgatuple.IsObjectRelation(q.User),
	}
	tree, _, err = e.explainRelation(ctx, q.Object, q.Relation)
	return tree, e.truncated, err
}

// evaluator holds the state of one evaluation.
type evaluator struct {
	types     *typesystem.TypeSystem
	reader    Reader
	question  Question
	userType  string
	isUserset bool

	// path maps the relations on the current path to their depth.
	path map[string]int
	// done holds the finished relations whose answer does not depend on the path.
	done                        map[string]*Step
	steps, nodes, reads, tuples int
	truncated                   bool
}

// newStep returns a step, which counts as a node of the tree.
func (e *evaluator) newStep(s Step) *Step {
	e.nodes++
	return &s
}

// unbound is the depth for an answer that does not depend on the path to its step.
const unbound = maxDepth + 1

// explainRelation evaluates a relation to an object. The answer may depend on relations on the current path; lowest is
// the smallest depth of these.
func (e *evaluator) explainRelation(ctx context.Context, object, relation string) (s *Step, lowest int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, unbound, err
	}
	s = e.newStep(Step{Kind: Relation, Object: object, Relation: relation})
	name := fgatuple.ToObjectRelationString(object, relation)
	if depth, isCycle := e.path[name]; isCycle {
		s.Reason, s.cyclic = "the path returns to a step above", true
		return s, depth, nil
	}
	if earlier, ok := e.done[name]; ok {
		s.Answer, s.cyclic, s.Repeated = earlier.Answer, earlier.cyclic, true
		return s, unbound, nil
	}
	if name == e.question.User {
		s.Answer, s.Reason = Yes, "the user is this userset"
		return s, unbound, nil
	}
	typ := fgatuple.GetType(object)
	possible, err := e.types.PathExists(e.question.User, relation, typ)
	if err != nil {
		s.Answer, s.Reason = Undecided, err.Error()
		return s, unbound, nil
	}
	if !possible {
		s.Reason = "the model gives this relation to no user of type " + e.userTypeText()
		return s, unbound, nil
	}
	definition, err := e.types.GetRelation(typ, relation)
	if err != nil {
		s.Answer, s.Reason = Undecided, err.Error()
		return s, unbound, nil
	}
	depth := len(e.path)
	if e.isFull(depth) {
		return e.leaveOut(s), unbound, nil
	}
	e.steps++
	e.path[name] = depth
	defer delete(e.path, name)
	child, lowest, err := e.explainRewrite(ctx, object, relation, definition.GetRewrite())
	if err != nil {
		return nil, unbound, err
	}
	s.Children = []*Step{child}
	if s.setAnswer(); lowest >= depth {
		e.done[name], lowest = s, unbound
	}
	return s, lowest, nil
}

// userTypeText returns the type of the user, such as "user" or "group#member".
func (e *evaluator) userTypeText() string {
	_, relation := fgatuple.SplitObjectRelation(e.question.User)
	if relation == "" {
		return e.userType
	}
	return e.userType + "#" + relation
}

// isFull reports whether the tree has no room for a step at this depth.
func (e *evaluator) isFull(depth int) bool {
	return e.steps >= maxSteps || e.reads >= maxReads || e.hasMaxNodes() || depth >= maxDepth
}

func (e *evaluator) hasMaxNodes() bool { return e.nodes >= maxNodes }

// leaveOut returns a step as undecided.
func (e *evaluator) leaveOut(s *Step) *Step {
	s.Answer, s.Reason, e.truncated = Undecided, tooLarge, true
	return s
}

// leaveOutRest adds one undecided child to s, in place of all that are left out.
func (e *evaluator) leaveOutRest(s *Step, object, relation, reason string) {
	e.truncated = true
	s.Children = append(s.Children, e.newStep(Step{Kind: Relation, Object: object, Relation: relation, Answer: Undecided, Reason: reason}))
}

// explainRewrite evaluates a part of a relation's definition.
func (e *evaluator) explainRewrite(ctx context.Context, object, relation string, rewrite *openfgav1.Userset) (s *Step, lowest int, err error) {
	switch rw := rewrite.GetUserset().(type) {
	case *openfgav1.Userset_ComputedUserset:
		return e.explainRelation(ctx, object, rw.ComputedUserset.GetRelation())
	case *openfgav1.Userset_TupleToUserset:
		return e.explainFrom(ctx, object, rw.TupleToUserset)
	case *openfgav1.Userset_Union:
		return e.explainParts(ctx, object, relation, Any, rw.Union.GetChild())
	case *openfgav1.Userset_Intersection:
		return e.explainParts(ctx, object, relation, All, rw.Intersection.GetChild())
	case *openfgav1.Userset_Difference:
		return e.explainParts(ctx, object, relation, ButNot, []*openfgav1.Userset{rw.Difference.GetBase(), rw.Difference.GetSubtract()})
	default:
		return e.explainDirect(ctx, object, relation)
	}
}

func (e *evaluator) explainParts(ctx context.Context, object, relation string, kind Kind, parts []*openfgav1.Userset) (*Step, int, error) {
	s, lowest := e.newStep(Step{Kind: kind}), unbound
	for _, part := range parts {
		if kind != ButNot && e.hasMaxNodes() {
			e.leaveOutRest(s, object, relation, tooLarge)
			break
		}
		child, depends, err := e.explainRewrite(ctx, object, relation, part)
		if err != nil {
			return nil, unbound, err
		}
		s.Children, lowest = append(s.Children, child), min(lowest, depends)
	}
	return s.setAnswer(), lowest, nil
}

// explainDirect evaluates the tuples that assign a relation: the tuple of the user, the tuple of all users, and the
// tuples of usersets.
func (e *evaluator) explainDirect(ctx context.Context, object, relation string) (*Step, int, error) {
	s, lowest := e.newStep(Step{Kind: Direct}), unbound
	found, err := e.readAssignments(ctx, s, object, relation)
	if err != nil {
		return nil, unbound, err
	}
	for _, t := range found {
		if e.hasMaxNodes() {
			e.leaveOutRest(s, object, relation, tooLarge)
			break
		}
		child, depends, err := e.explainTuple(ctx, t, "")
		if err != nil {
			return nil, unbound, err
		}
		s.Children, lowest = append(s.Children, child), min(lowest, depends)
	}
	return s.setAnswer(), lowest, nil
}

// readAssignments returns the valid tuples of a relation that can matter for the user.
func (e *evaluator) readAssignments(ctx context.Context, s *Step, object, relation string) (found []*openfgav1.TupleKey, err error) {
	typ, own := fgatuple.GetType(object), e.question.User
	target := typesystem.DirectRelationReference(typ, relation)
	var users []string
	if related, _ := e.types.IsDirectlyRelated(target, typesystem.DirectRelationReference(e.userType, fgatuple.GetRelation(own))); related {
		users = append(users, own)
	}
	everyone := fgatuple.TypedPublicWildcard(e.userType)
	if public, _ := e.types.IsPubliclyAssignable(target, e.userType); public && !e.isUserset && own != everyone {
		users = append(users, everyone)
	}
	for _, user := range users {
		single, err := e.readTuples(ctx, s, object, relation, user)
		if err != nil {
			return nil, err
		}
		found = append(found, single...)
	}
	if usersets, _ := e.types.DirectlyRelatedUsersets(typ, relation); len(usersets) == 0 {
		return found, nil
	}
	all, err := e.readTuples(ctx, s, object, relation, "")
	for _, t := range all {
		if fgatuple.IsObjectRelation(t.GetUser()) && t.GetUser() != own {
			found = append(found, t)
		}
	}
	return found, err
}

// readTuples returns the valid tuples of a relation. A part that is left out becomes an undecided child of s.
func (e *evaluator) readTuples(ctx context.Context, s *Step, object, relation, user string) (found []*openfgav1.TupleKey, err error) {
	if e.reads >= maxReads || e.tuples >= maxTuples {
		e.leaveOutRest(s, object, relation, tooLarge)
		return nil, nil
	}
	e.reads++
	tuples, more, err := e.reader.ReadRelation(ctx, object, relation, user)
	if err != nil {
		return nil, fmt.Errorf("reading the tuples of %s#%s: %w", object, relation, err)
	}
	e.tuples += len(tuples)
	for _, t := range tuples {
		if validation.CheckTuple(e.types, t) == nil { // OpenFGA ignores tuples that its model does not allow any more.
			found = append(found, t)
		}
	}
	if more {
		e.leaveOutRest(s, object, relation, "left out: the relation has too many tuples")
	}
	return found, nil
}

// explainFrom evaluates a definition such as "member from workspace".
func (e *evaluator) explainFrom(ctx context.Context, object string, definition *openfgav1.TupleToUserset) (*Step, int, error) {
	tupleset, computed := definition.GetTupleset().GetRelation(), definition.GetComputedUserset().GetRelation()
	s, lowest := e.newStep(Step{Kind: From, Relation: computed + " from " + tupleset}), unbound
	found, err := e.readTuples(ctx, s, object, tupleset, "")
	if err != nil {
		return nil, unbound, err
	}
	for _, t := range found {
		if _, err := e.types.GetRelation(fgatuple.GetType(t.GetUser()), computed); err != nil {
			continue // The type of that object lacks the relation.
		}
		if e.hasMaxNodes() {
			e.leaveOutRest(s, object, tupleset, tooLarge)
			break
		}
		child, depends, err := e.explainTuple(ctx, t, computed)
		if err != nil {
			return nil, unbound, err
		}
		s.Children, lowest = append(s.Children, child), min(lowest, depends)
	}
	return s.setAnswer(), lowest, nil
}

// explainTuple evaluates a tuple. The tuple leads to the relation of its userset or, if computed is set, to that
// relation of its object.
func (e *evaluator) explainTuple(ctx context.Context, t *openfgav1.TupleKey, computed string) (s *Step, lowest int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, unbound, err
	}
	s = e.newStep(Step{Kind: Tuple, Tuple: t})
	if e.isFull(len(e.path)) {
		return e.leaveOut(s), unbound, nil
	}
	e.steps++
	if s.Answer, s.Reason = e.evaluateCondition(ctx, t); s.Answer != Yes {
		return s, unbound, nil
	}
	object, relation := fgatuple.SplitObjectRelation(t.GetUser())
	if computed != "" {
		relation = computed
	}
	if relation == "" || t.GetUser() == e.question.User && computed == "" {
		return s, unbound, nil
	}
	child, lowest, err := e.explainRelation(ctx, object, relation)
	if err != nil {
		return nil, unbound, err
	}
	s.Children = []*Step{child}
	return s.setAnswer(), lowest, nil
}

// evaluateCondition returns whether the condition of a tuple is met, with the reason if it is not.
func (e *evaluator) evaluateCondition(ctx context.Context, t *openfgav1.TupleKey) (Answer, string) {
	name := t.GetCondition().GetName()
	if name == "" {
		return Yes, ""
	}
	condition, ok := e.types.GetCondition(name)
	if !ok {
		return Undecided, "condition " + name + " is not in the model"
	}
	result, err := condition.Evaluate(ctx, e.question.Context.GetFields(), t.GetCondition().GetContext().GetFields())
	switch {
	case err != nil:
		return Undecided, "condition " + name + " cannot be evaluated: " + err.Error()
	case len(result.MissingParameters) > 0:
		return Undecided, "condition " + name + " needs values in the context: " + strings.Join(result.MissingParameters, ", ")
	case !result.ConditionMet:
		return No, "condition " + name + " is not met"
	}
	return Yes, "condition " + name + " is met"
}
