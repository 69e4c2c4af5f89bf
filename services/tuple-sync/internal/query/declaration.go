package query

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// tupleDeclaration is a tuple with all objects that declare it.
type tupleDeclaration struct {
	tuple.Tuple
	owners []*tuplev1.Owner
}

// declarationsOf lists all tuples declared for a Store, ordered by key.
func (s *Server) declarationsOf(ctx context.Context, store informer.Object[corev1alpha1.Store]) ([]tupleDeclaration, error) {
	model, err := s.cfg.Models.Get(ctx, store.Value.Status.StoreID, store.Value.Status.AuthorizationModelID)
	if err != nil {
		return nil, err
	}
	found := map[tuple.Tuple]*tupleDeclaration{}
	for _, e := range plan.EvaluateOwners(store.Value.Status.StoreID, s.cfg.State.OwnersOfStore(store), model) {
		written := e.WrittenTuples()
		for _, v := range e.Verdicts {
			if found[v.Tuple] == nil {
				found[v.Tuple] = &tupleDeclaration{Tuple: v.Tuple}
			}
			found[v.Tuple].owners = append(found[v.Tuple].owners, ownerToProto(e.Owner, v, written))
		}
	}
	all := make([]tupleDeclaration, 0, len(found))
	for _, d := range found {
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b tupleDeclaration) int { return cmp.Compare(a.sortKey(), b.sortKey()) })
	return all, nil
}

// ownerToProto returns the state of one tuple of an object.
func ownerToProto(of *plan.Owner, v plan.Verdict, written map[tuple.Tuple]struct{}) *tuplev1.Owner {
	_, live := written[v.Tuple]
	o := &tuplev1.Owner{
		Kind: ownerKind(of), Name: of.Key.Name, Since: timestamppb.New(of.Created),
		State: tuplev1.State_STATE_INVALID, Message: v.Reason,
	}
	switch {
	case v.State == plan.Waiting:
		o.State = tuplev1.State_STATE_PENDING
	case v.State == plan.Accepted && live:
		o.State = tuplev1.State_STATE_LIVE
	case v.State == plan.Accepted:
		o.State, o.Message = tuplev1.State_STATE_PENDING, "It is about to be written."
	}
	return o
}

func ownerKind(o *plan.Owner) string {
	if o.IsStore {
		return kinds.Stores().Kind
	}
	return kinds.AuthorizationModels().Kind
}

// setFields sets the path of the tuple in each object of this cluster that declares it.
func (s *Server) setFields(d tupleDeclaration) {
	for _, o := range d.owners {
		key := event.Key{Cluster: s.cfg.Cluster, GroupResource: kinds.Stores().GroupResource, Name: o.GetName()}
		if o.GetKind() == kinds.AuthorizationModels().Kind {
			key.GroupResource = kinds.AuthorizationModels().GroupResource
			if of, ok := s.cfg.State.Models.Get(key); ok {
				o.Field = fieldOfTuple(of.Value.Spec.Tuples, d.Tuple)
			}
		} else if of, ok := s.cfg.State.Stores.Get(key); ok {
			o.Field = fieldOfTuple(of.Value.Spec.Tuples, d.Tuple)
		}
	}
}

// fieldOfTuple returns the path of the first equal tuple in a list, or "". Tuples that the service adds are in no list.
func fieldOfTuple(list []corev1alpha1.Tuple, t tuple.Tuple) string {
	for i, d := range list {
		if d.Object == t.Object && d.Relation == t.Relation && d.User == t.User && tuple.ParseDeclared(d) == t {
			return fmt.Sprintf("spec.tuples[%d]", i)
		}
	}
	return ""
}

// maxKey bounds the part of a tuple that a page token holds, in bytes. Tuples may have any length.
const maxKey = 900

// sortKey returns a value that orders declarations and is unique. It ends with a hash if the tuple is longer than maxKey.
func (d tupleDeclaration) sortKey() string {
	key := strings.Join([]string{d.Object, d.Relation, d.User, d.Condition, d.Context}, "\x00")
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return key[:maxKey] + hex.EncodeToString(sum[:])
}

func (d tupleDeclaration) toProto(store string) *tuplev1.Tuple {
	t := &tuplev1.Tuple{Store: store, Key: &tuplev1.TupleKey{Object: d.Object, Relation: d.Relation, User: d.User}, Owners: d.owners}
	if c := d.ToOpenFGA().GetCondition(); c != nil {
		t.Condition = &tuplev1.Condition{Name: c.GetName(), Context: c.GetContext()}
	}
	return t
}

// hasOwner reports whether "kind/name" is among the owners.
func (d tupleDeclaration) hasOwner(kind, name string) bool {
	return slices.ContainsFunc(d.owners, func(o *tuplev1.Owner) bool {
		return strings.EqualFold(o.GetKind(), kind) && o.GetName() == name
	})
}
