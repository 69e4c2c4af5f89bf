package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/webhook/internal/review"
)

const (
	// maxTurns bounds the lists and previews that are computed at a time.
	maxTurns = 4
	// maxWaits bounds the requests that wait for an object at a time.
	maxWaits = 32
	// maxHolders bounds the holders of a permission that are searched.
	maxHolders = 100_000
	// maxPermissions bounds the permissions in an answer, unless a single row has more.
	maxPermissions = 20_000
)

// accessServer implements AccessService.
type accessServer struct {
	state *indexState
	view  *informer.Informer
	// decider decides the questions of CheckAccess.
	decider Decider
	// cluster is the cluster of all objects. store is the name of its Store of IAM.
	cluster, store string
	// staleness bounds the age of the state from which questions are answered.
	staleness time.Duration
	// rules defines which parts of a request are trusted.
	rules *review.TrustRules
	// fetch reads an object from the API server. It returns nil if the object does not exist.
	fetch   func(context.Context, event.Key) ([]byte, error)
	limiter *rpc.CallLimiter
	// waits bounds the requests that wait for an object.
	waits *rpc.CallLimiter
}

var _ accessv1connect.AccessServiceHandler = (*accessServer)(nil)

// rpcHandler returns the handler of s. A question about others requires the right to create SubjectAccessReviews, as at
// the API server. A question about the caller requires none.
func (s *accessServer) rpcHandler() rpc.Handler {
	return rpc.NewHandler[accessv1connect.AccessServiceHandler](accessv1connect.AccessServiceName, accessv1connect.NewAccessServiceHandler, s,
		map[string]rpc.AccessRule{
			accessv1connect.AccessServiceCheckAccessProcedure:            rightToReviewOthers,
			accessv1connect.AccessServiceExplainAccessProcedure:          rightToReviewOthers,
			accessv1connect.AccessServiceWhoCanProcedure:                 rightToReviewOthers,
			accessv1connect.AccessServiceWhatCanProcedure:                rightToReviewOthers,
			accessv1connect.AccessServicePreviewBindingProcedure:         rightToReviewOthers,
			accessv1connect.AccessServiceListProtectedResourcesProcedure: rightToListKinds,
			accessv1connect.AccessServiceGetModelStatusProcedure:         rightToListKinds,
		}).ExemptOwnRequests(s.isOwnAccessRequest)
}

// rightToReviewOthers returns the right to query the access of others.
func rightToReviewOthers(any) (rpc.RequiredRight, error) {
	return rpc.RequiredRight{Verb: "create", GroupResource: event.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}}, nil
}

// rightToListKinds returns the right to list ProtectedResources. A request that waits for an object needs the right of others
// instead, because it causes a read at the API server.
func rightToListKinds(request any) (rpc.RequiredRight, error) {
	if r, ok := request.(interface{ GetAtLeast() *accessv1.AtLeast }); ok && r.GetAtLeast().GetObject() != nil {
		return rightToReviewOthers(request)
	}
	return rpc.RequiredRight{Verb: "list", GroupResource: kinds.ProtectedResources().GroupResource}, nil
}

// awaitIndexAtLeast returns the index and a revision, once they include the minimum state. The index holds at least the revision,
// which is read first.
func (s *accessServer) awaitIndexAtLeast(ctx context.Context, least *accessv1.AtLeast) (x *authz.Index, revision string, err error) {
	if least.GetRevision() != "" {
		sequence, began, err := topology.ParseRevision(least.GetRevision())
		if err != nil {
			return nil, "", rpc.InvalidError("at_least: %w", err)
		}
		if err := s.view.AwaitRevision(ctx, sequence, began); err != nil {
			return nil, "", rpc.IncompleteError(err)
		}
	}
	if least.GetObject() != nil {
		if err := s.awaitRequestedObject(ctx, event.KeyFromRef(least.GetObject())); err != nil {
			return nil, "", err
		}
	}
	if err := s.checkIndexIsFresh(); err != nil { // Checked before the index is read: while the informer reloads, it is never fresh.
		return nil, "", rpc.IncompleteError(err)
	}
	revision = s.view.Revision()
	x, err = s.state.currentIndex()
	return x, revision, rpc.IncompleteError(err)
}

// checkIndexIsFresh returns an error if the informer is incomplete or older than the limit. Completeness alone is not
// enough: the stream can be read to its end while the watcher does not write.
func (s *accessServer) checkIndexIsFresh() error {
	if err := s.view.IncompleteErr(); err != nil {
		return err
	}
	if age := s.view.Staleness(); age > s.staleness {
		return fmt.Errorf("%w: by the barriers of the watcher, its data may be older than %s (--max-staleness)", informer.ErrIncomplete, s.staleness)
	}
	return nil
}

// currentRegistry returns the registered kinds, or an error while no question can be answered.
func (s *accessServer) currentRegistry() (*iam.Registry, error) {
	if err := s.checkIndexIsFresh(); err != nil {
		return nil, err
	}
	x, err := s.state.currentIndex()
	if err != nil {
		return nil, err
	}
	return x.Registry(), nil
}

func (s *accessServer) awaitRequestedObject(ctx context.Context, key event.Key) error {
	key.Cluster = s.cluster
	if _, ok := s.state.kinds[key.GroupResource]; !ok {
		return rpc.InvalidError("at_least: webhook asks the API server about objects of IAM alone, and not of %s: name a revision", key.GroupResource)
	}
	release, err := s.waits.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	object, err := s.fetch(ctx, key)
	if err != nil {
		return err
	}
	return rpc.IncompleteError(s.state.awaitObject(ctx, key, object))
}

// CheckAccess implements AccessService.
func (s *accessServer) CheckAccess(ctx context.Context, r *accessv1.CheckAccessRequest) (*accessv1.CheckAccessResponse, error) {
	x, revision, err := s.awaitIndexAtLeast(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	who, err := s.requestedSubject(ctx, r)
	if err != nil {
		return nil, err
	}
	q := s.queryFromRequest(x, who, r.GetVerb(), r.GetResource())
	answer := &accessv1.CheckAccessResponse{Permission: q.Permission, Revision: revision, NoNamespace: s.lacksNamespace(q)}
	why, allowed, err := decideAtMinimumState(ctx, s.decider, x, q, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	if allowed {
		answer.Allowed, answer.Grant = true, toGrantMessage(why)
	}
	return answer, nil
}

// ExplainAccess implements AccessService.
func (s *accessServer) ExplainAccess(ctx context.Context, r *accessv1.ExplainAccessRequest) (*accessv1.ExplainAccessResponse, error) {
	x, revision, err := s.awaitIndexAtLeast(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	who, err := s.requestedSubject(ctx, r)
	if err != nil {
		return nil, err
	}
	release, err := s.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	q := s.queryFromRequest(x, who, r.GetVerb(), r.GetResource())
	e := x.Explain(q)
	if caller, known := rpc.CallerFromContext(ctx); known && s.isOwnAccessRequest(caller, r) {
		e.NoObject, e.Truncated = false, false // Otherwise every user could find out which objects exist.
	}
	answer := &accessv1.ExplainAccessResponse{
		Allowed: e.Allowed, Permission: q.Permission, Unregistered: e.Unregistered, NoSubject: e.NoSubject, NoObject: e.NoObject,
		Inherits: toMessages(e.InheritancePath, toNameMessage), Path: toMessages(e.Path, toPlaceMessage),
		Lacking: toMessages(e.RolesWithoutPermission, toGrantMessage), Revision: revision,
		Truncated: e.Truncated, NoNamespace: s.lacksNamespace(q),
	}
	if e.Allowed {
		answer.Grant, answer.Membership = toGrantMessage(e.Proof), toOptionalNameMessage(e.Membership)
	}
	return answer, nil
}

func toMessages[T, M any](all []T, message func(T) M) []M {
	list := make([]M, 0, len(all))
	for _, item := range all {
		list = append(list, message(item))
	}
	return slices.Clip(list)
}
