package query

import (
	"cmp"
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/decision"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

const (
	// maxRelationTuples bounds the tuples that a tree reads of one relation.
	maxRelationTuples = 1000
	// maxExplanations bounds the attempts to build a tree while tuples change.
	maxExplanations = 3
)

// errChanging is the error for callers if the tree and OpenFGA's answer come from different tuples.
var errChanging = errors.New("the answer is undecided: its tuples changed while they were read; ask again")

// ExplainCheck returns OpenFGA's answer with the tree behind it.
func (s *Server) ExplainCheck(ctx context.Context, r *tuplev1.ExplainCheckRequest) (*tuplev1.ExplainCheckResponse, error) {
	// A call that waits for an object must not hold the slot of a tree.
	if err := s.awaitObject(ctx, r.GetStore(), r.GetAfter()); err != nil {
		return nil, err
	}
	release, err := s.trees.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	question := &tuplev1.CheckRequest{
		Store: r.GetStore(), Key: r.GetKey(), ContextualTuples: r.GetContextualTuples(), Context: r.GetContext(), HigherConsistency: true,
	}
	for range maxExplanations {
		answer, err := s.Check(ctx, question)
		if err != nil {
			return nil, err
		}
		status, model, err := s.storeWithModel(ctx, r.GetStore())
		if err != nil {
			return nil, err
		}
		if answer.GetAuthorizationModelId() != status.AuthorizationModelID {
			continue
		}
		reader := &storeReader{openFGA: s.cfg.OpenFGA, storeID: status.StoreID, written: map[tuple.ID]time.Time{}}
		given := contextualTuples(r.GetContextualTuples()).GetTupleKeys()
		tree, truncated, err := decision.Explain(ctx, model.Types(), decision.WithRequestTuples(reader, given), decision.Question{
			Object: r.GetKey().GetObject(), Relation: r.GetKey().GetRelation(), User: r.GetKey().GetUser(), Context: r.GetContext(),
		})
		if err != nil {
			return nil, cmp.Or(ctx.Err(), rpcError(err))
		}
		if tree.Answer != decision.Undecided && (tree.Answer == decision.Yes) != answer.GetAllowed() {
			continue
		}
		origins, err := s.findOrigins(ctx, r.GetStore(), model, reader, given)
		if err != nil {
			return nil, err
		}
		return &tuplev1.ExplainCheckResponse{
			Allowed: answer.GetAllowed(), StoreId: answer.GetStoreId(), AuthorizationModelId: answer.GetAuthorizationModelId(),
			Tree: origins.stepToProto(tree), Truncated: truncated,
		}, nil
	}
	return nil, connect.NewError(connect.CodeAborted, errChanging)
}

// storeReader reads the tuples of an OpenFGA store for a tree.
type storeReader struct {
	openFGA OpenFGAClient
	storeID string
	// written holds the tuples that were read, with the times at which OpenFGA wrote them.
	written map[tuple.ID]time.Time
	held    []tuple.Tuple
}

// ReadRelation implements [decision.Reader].
func (s *storeReader) ReadRelation(ctx context.Context, object, relation, user string) (tuples []*openfgav1.TupleKey, more bool, err error) {
	filter := &openfgav1.ReadRequestTupleKey{Object: object, Relation: relation, User: user}
	found, more, err := s.openFGA.ReadRelationTuples(ctx, s.storeID, filter, maxRelationTuples)
	for _, t := range found {
		held := tuple.FromOpenFGA(t.GetKey())
		if _, again := s.written[held.ID]; !again {
			s.held = append(s.held, held)
		}
		s.written[held.ID] = t.GetTimestamp().AsTime()
		tuples = append(tuples, t.GetKey())
	}
	return tuples, more, err
}

// tupleOrigins holds the origins of the tuples in a tree.
type tupleOrigins struct {
	store string
	// given lists the tuples of the request.
	given      map[*openfgav1.TupleKey]struct{}
	declared   map[tuple.Tuple]tupleDeclaration
	undeclared map[tuple.Tuple]plan.UndeclaredTuple
	isIAM      bool
}

// findOrigins returns the origins of all tuples that a tree has read.
func (s *Server) findOrigins(
	ctx context.Context, store string, model *plan.Model, read *storeReader, given []*openfgav1.TupleKey,
) (*tupleOrigins, error) {
	origins := &tupleOrigins{
		store: store, given: map[*openfgav1.TupleKey]struct{}{}, declared: map[tuple.Tuple]tupleDeclaration{},
		undeclared: map[tuple.Tuple]plan.UndeclaredTuple{}, isIAM: store == s.cfg.IAMStore,
	}
	for _, key := range given {
		origins.given[key] = struct{}{}
	}
	declared, err := s.declaredTuples(ctx, store, func(d tupleDeclaration) bool { _, ok := read.written[d.ID]; return ok })
	if err != nil {
		return nil, err
	}
	for _, d := range declared {
		s.setFields(d)
		origins.declared[d.Tuple] = d
	}
	for _, u := range s.cfg.State.UndeclaredTuples(read.storeID, model, read.held, read.written) {
		origins.undeclared[u.Tuple] = u
	}
	return origins, nil
}

func (o *tupleOrigins) stepToProto(s *decision.Step) *tuplev1.Decision {
	m := &tuplev1.Decision{
		Kind: kindToProto(s.Kind), Answer: answerToProto(s.Answer), Object: s.Object, Relation: s.Relation, Reason: s.Reason, Repeated: s.Repeated,
	}
	if s.Tuple != nil {
		m.Tuple, m.Origin = o.tupleToProto(s.Tuple)
	}
	for _, child := range s.Children {
		m.Children = append(m.Children, o.stepToProto(child))
	}
	return m
}

func (o *tupleOrigins) tupleToProto(key *openfgav1.TupleKey) (*tuplev1.Tuple, tuplev1.Origin) {
	t := tuple.FromOpenFGA(key)
	if _, ok := o.given[key]; ok {
		return tupleDeclaration{Tuple: t}.toProto(o.store), tuplev1.Origin_ORIGIN_REQUEST
	}
	declared, isDeclared := o.declared[t]
	u, isUndeclared := o.undeclared[t]
	switch {
	case isUndeclared && u.Fate == plan.Unmanaged:
		return tupleDeclaration{Tuple: t}.toProto(o.store), tuplev1.Origin_ORIGIN_UNMANAGED
	case isUndeclared:
		return tupleDeclaration{Tuple: t}.toProto(o.store), tuplev1.Origin_ORIGIN_LEAVING
	case isDeclared:
		return declared.toProto(o.store), tuplev1.Origin_ORIGIN_DECLARED
	case o.isIAM && iam.IsIAMObject(t.Object):
		return tupleDeclaration{Tuple: t}.toProto(o.store), tuplev1.Origin_ORIGIN_IAM
	}
	return tupleDeclaration{Tuple: t}.toProto(o.store), tuplev1.Origin_ORIGIN_UNSPECIFIED // Its object changed after the tuple was read.
}

func kindToProto(k decision.Kind) tuplev1.Decision_Kind {
	return map[decision.Kind]tuplev1.Decision_Kind{
		decision.Relation: tuplev1.Decision_KIND_RELATION, decision.Any: tuplev1.Decision_KIND_ANY, decision.All: tuplev1.Decision_KIND_ALL,
		decision.ButNot: tuplev1.Decision_KIND_BUT_NOT, decision.Direct: tuplev1.Decision_KIND_DIRECT, decision.From: tuplev1.Decision_KIND_FROM,
		decision.Tuple: tuplev1.Decision_KIND_TUPLE,
	}[k]
}

func answerToProto(a decision.Answer) tuplev1.Decision_Answer {
	switch a {
	case decision.Yes:
		return tuplev1.Decision_ANSWER_YES
	case decision.No:
		return tuplev1.Decision_ANSWER_NO
	default:
		return tuplev1.Decision_ANSWER_UNDECIDED
	}
}
