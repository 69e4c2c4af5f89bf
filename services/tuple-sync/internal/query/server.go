// Package query implements TupleService. It answers from the informer what is declared, and from OpenFGA what follows
// from it.
package query

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/encoding/protojson"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/tuple-sync/declared"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/derived"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// OpenFGAClient holds the calls to OpenFGA.
type OpenFGAClient interface {
	ReadTuple(ctx context.Context, storeID string, key *openfgav1.TupleKey) (*openfgav1.Tuple, bool, error)
	ReadTuplePage(ctx context.Context, storeID string, size int32, token string) (page []*openfgav1.Tuple, next string, err error)
	Check(ctx context.Context, r *openfgav1.CheckRequest) (*openfgav1.CheckResponse, error)
	ListObjects(ctx context.Context, r *openfgav1.ListObjectsRequest) (*openfgav1.ListObjectsResponse, error)
	ListUsers(ctx context.Context, r *openfgav1.ListUsersRequest) (*openfgav1.ListUsersResponse, error)
	ReadRelationTuples(ctx context.Context, storeID string, filter *openfgav1.ReadRequestTupleKey, limit int) (tuples []*openfgav1.Tuple, more bool, err error)
	Expand(ctx context.Context, r *openfgav1.ExpandRequest) (*openfgav1.ExpandResponse, error)
}

// ModelReader returns authorization models. It returns nil if the store lacks the model.
type ModelReader interface {
	Get(ctx context.Context, storeID, modelID string) (*plan.Model, error)
}

// APIServer reads objects at the API server.
type APIServer interface {
	Get(ctx context.Context, kind kinds.Kind, namespace, name string) (event.Change, error)
}

// Config of a [Server]. All fields are required.
type Config struct {
	State *declared.State
	// Cluster is the name of the cluster whose Stores are served.
	Cluster string
	// Complete returns nil once State is complete.
	Complete func() error
	Models   ModelReader
	OpenFGA  OpenFGAClient
	// IAMStore is the name of the Store of IAM.
	IAMStore string
	IAM      AdoptionPreviewer
	// LostReferences lists the names in bindings whose objects are gone for good, and the kinds that it cannot check.
	LostReferences func() (lost []derived.LostReference, unchecked []string)
	Kube           APIServer
	// ListLimits are the limits of OpenFGA for lists.
	ListLimits ListLimits
}

// Server implements TupleService.
type Server struct {
	cfg Config
	// waits bounds the calls that wait for an object, because each reads it at the API server again and again.
	waits *rpc.CallLimiter
	// trees bounds the calls that build a tree, because each may read hundreds of relations.
	trees *rpc.CallLimiter
}

const (
	maxWaits = 16
	maxTrees = 4
)

// New returns a server of the queries.
func New(cfg Config) *Server {
	return &Server{cfg: cfg, waits: rpc.NewCallLimiter(maxWaits), trees: rpc.NewCallLimiter(maxTrees)}
}

// Handler returns the RPC handler of s. A caller needs the right to read the Store in question.
func (s *Server) Handler() rpc.Handler {
	return rpc.NewHandler[tuplev1connect.TupleServiceHandler](tuplev1connect.TupleServiceName, tuplev1connect.NewTupleServiceHandler, s,
		requiredAccess(s.cfg.IAMStore))
}

func requiredAccess(iamStore string) map[string]rpc.AccessRule {
	stores := kinds.Stores().GroupResource
	return map[string]rpc.AccessRule{
		tuplev1connect.TupleServiceListTuplesProcedure:           rpc.RequireVerbOnName("get", stores, (*tuplev1.ListTuplesRequest).GetStore),
		tuplev1connect.TupleServiceListUndeclaredTuplesProcedure: rpc.RequireVerbOnName("get", stores, (*tuplev1.ListUndeclaredTuplesRequest).GetStore),
		tuplev1connect.TupleServicePreviewAdoptionProcedure: rpc.RequireVerbOnName("get", stores,
			func(*tuplev1.PreviewAdoptionRequest) string { return iamStore }),
		tuplev1connect.TupleServiceListLostBindingsProcedure: rpc.RequireVerbInNamespace("list", kinds.PolicyBindings().GroupResource,
			(*tuplev1.ListLostBindingsRequest).GetNamespace),
		tuplev1connect.TupleServiceExplainTupleProcedure: rpc.RequireVerbOnName("get", stores, (*tuplev1.ExplainTupleRequest).GetStore),
		tuplev1connect.TupleServiceCheckProcedure:        rpc.RequireVerbOnName("get", stores, (*tuplev1.CheckRequest).GetStore),
		tuplev1connect.TupleServiceExplainCheckProcedure: rpc.RequireVerbOnName("get", stores, (*tuplev1.ExplainCheckRequest).GetStore),
		tuplev1connect.TupleServiceListUsersProcedure:    rpc.RequireVerbOnName("get", stores, (*tuplev1.ListUsersRequest).GetStore),
		tuplev1connect.TupleServiceListObjectsProcedure:  rpc.RequireVerbOnName("get", stores, (*tuplev1.ListObjectsRequest).GetStore),
		tuplev1connect.TupleServiceExpandProcedure:       rpc.RequireVerbOnName("get", stores, (*tuplev1.ExpandRequest).GetStore),
	}
}

// ListTuples lists declared tuples with the objects that declare them.
func (s *Server) ListTuples(ctx context.Context, r *tuplev1.ListTuplesRequest) (*tuplev1.ListTuplesResponse, error) {
	kind, name, ok := strings.Cut(r.GetOwner(), "/")
	if !ok && r.GetOwner() != "" {
		return nil, rpc.InvalidError("owner %q is not kind/name: use for example authorizationmodel/demo", r.GetOwner())
	}
	all, err := s.declaredTuples(ctx, r.GetStore(), func(d tupleDeclaration) bool {
		return matchesPattern(r.GetObject(), d.Object) && matchesPattern(r.GetRelation(), d.Relation) && matchesPattern(r.GetUser(), d.User) &&
			(r.GetOwner() == "" || d.hasOwner(kind, name))
	})
	if err == nil && len(all) == 0 {
		err = s.checkTupleFilter(ctx, r, kind, name)
	}
	if err != nil {
		return nil, err
	}
	page, next, err := rpc.Paginate(all, tupleDeclaration.sortKey, r)
	if err != nil {
		return nil, err
	}
	response := &tuplev1.ListTuplesResponse{NextPageToken: next}
	for _, d := range page {
		response.Tuples = append(response.Tuples, d.toProto(r.GetStore()))
	}
	return response, nil
}

// matchesPattern reports whether a value equals a pattern; an empty pattern matches any value.
func matchesPattern(pattern, value string) bool { return pattern == "" || pattern == value }

// ExplainTuple returns the objects that declare a tuple, and whether OpenFGA holds it.
func (s *Server) ExplainTuple(ctx context.Context, r *tuplev1.ExplainTupleRequest) (*tuplev1.ExplainTupleResponse, error) {
	id := tuple.ID{Object: r.GetKey().GetObject(), Relation: r.GetKey().GetRelation(), User: r.GetKey().GetUser()}
	found, err := s.declaredTuples(ctx, r.GetStore(), func(d tupleDeclaration) bool { return d.ID == id })
	if err == nil && len(found) == 0 {
		err = s.checkTupleName(ctx, r.GetStore(), r.GetKey())
	}
	if err != nil {
		return nil, err
	}
	explained := tupleDeclaration{Tuple: tuple.Tuple{ID: id}}
	for i, d := range found {
		if i == 0 {
			explained.Tuple = d.Tuple
		}
		s.setFields(d)
		explained.owners = append(explained.owners, d.owners...)
	}
	response := &tuplev1.ExplainTupleResponse{}
	store, err := s.findStore(ctx, r.GetStore())
	if err != nil {
		return nil, err
	}
	if store.Value.Status.StoreID != "" {
		live, ok, err := s.cfg.OpenFGA.ReadTuple(ctx, store.Value.Status.StoreID, explained.ToOpenFGA())
		if err != nil {
			return nil, rpcError(err)
		}
		if response.Live = ok; ok {
			response.WrittenAt = live.GetTimestamp()
			explained.Tuple = tuple.FromOpenFGA(live.GetKey())
		}
	}
	response.Tuple = explained.toProto(r.GetStore())
	return response, nil
}

// Expand returns OpenFGA's tree behind a relation, with the objects that declare its tuples.
func (s *Server) Expand(ctx context.Context, r *tuplev1.ExpandRequest) (*tuplev1.ExpandResponse, error) {
	status, model, err := s.storeWithModel(ctx, r.GetStore())
	if err != nil {
		return nil, err
	}
	if err := checkObjectNames(model, r.GetObject(), r.GetRelation()); err != nil {
		return nil, err
	}
	answer, err := s.cfg.OpenFGA.Expand(ctx, &openfgav1.ExpandRequest{
		StoreId: status.StoreID, AuthorizationModelId: status.AuthorizationModelID,
		TupleKey: &openfgav1.ExpandRequestTupleKey{Object: r.GetObject(), Relation: r.GetRelation()},
	})
	if err != nil {
		return nil, rpcError(err)
	}
	tree, err := protojson.Marshal(answer.GetTree())
	if err != nil {
		return nil, fmt.Errorf("rendering the tree of %s#%s: %w", r.GetObject(), r.GetRelation(), err)
	}
	tuples, err := s.declaredTuples(ctx, r.GetStore(), func(d tupleDeclaration) bool {
		return d.Object == r.GetObject() && d.Relation == r.GetRelation()
	})
	if err != nil {
		return nil, err
	}
	response := &tuplev1.ExpandResponse{TreeJson: string(tree)}
	for _, d := range tuples {
		response.Tuples = append(response.Tuples, d.toProto(r.GetStore()))
	}
	return response, nil
}

// declaredTuples lists the declared tuples of a Store for which keep returns true.
func (s *Server) declaredTuples(ctx context.Context, name string, keep func(tupleDeclaration) bool) ([]tupleDeclaration, error) {
	store, err := s.findStore(ctx, name)
	if err != nil {
		return nil, err
	}
	all, err := s.declarationsOf(ctx, store)
	if err != nil {
		return nil, err
	}
	var kept []tupleDeclaration
	for _, d := range all {
		if keep(d) {
			kept = append(kept, d)
		}
	}
	return kept, nil
}

// findStore returns a Store of this cluster. If there is none with the name, the error suggests similar names.
func (s *Server) findStore(ctx context.Context, name string) (informer.Object[corev1alpha1.Store], error) {
	stores := kinds.Stores().GroupResource
	found, err := rpc.FindObject(s.cfg.Complete, s.cfg.State.Stores.Get, event.Key{Cluster: s.cfg.Cluster, GroupResource: stores, Name: name})
	return found, rpc.AddNameSuggestions(ctx, err, stores, name, func() (names []string) {
		for _, o := range s.cfg.State.Stores.All() {
			if o.Key.Cluster == s.cfg.Cluster {
				names = append(names, o.Key.Name)
			}
		}
		return names
	})
}

// storeWithModel returns the status of a Store that OpenFGA can answer for, and its model.
func (s *Server) storeWithModel(ctx context.Context, name string) (*corev1alpha1.StoreStatus, *plan.Model, error) {
	store, err := s.findStore(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	status := &store.Value.Status
	if status.StoreID == "" || status.AuthorizationModelID == "" {
		return nil, nil, rpc.NotFoundError("Store %q has no model in OpenFGA yet; its conditions give the reason", name)
	}
	model, err := s.cfg.Models.Get(ctx, status.StoreID, status.AuthorizationModelID)
	if err == nil && model == nil {
		err = lostError()
	}
	return status, model, err
}

// lostError returns the error for callers while OpenFGA lacks a store or a model that it had.
func lostError() error {
	return rpc.NotFoundError("OpenFGA lost the store or its model; the services create it again; try again")
}

// Errors for callers about answers that OpenFGA began and did not finish.
var (
	errTooComplex = errors.New("the answer is undecided: it takes more steps than OpenFGA allows (--resolve-node-limit)")
	errTimeout    = errors.New("the answer is undecided: OpenFGA ran out of time (--request-timeout)")
)

// rpcError converts an error of OpenFGA for the caller. It passes on what is wrong with the request, and hides internal
// errors.
func rpcError(err error) error {
	switch {
	case errors.Is(err, fga.ErrTooComplex):
		return connect.NewError(connect.CodeResourceExhausted, errTooComplex)
	case errors.Is(err, fga.ErrTimeout):
		return connect.NewError(connect.CodeDeadlineExceeded, errTimeout)
	case fault.IsUnavailable(err):
		return err
	case errors.Is(err, fga.ErrStoreNotFound), errors.Is(err, fga.ErrModelNotFound):
		return lostError()
	}
	return rpc.InvalidError("OpenFGA refuses the question: %s", tuple.RefusalReason(err))
}
