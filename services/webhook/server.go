package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	"github.com/entail-dev/entail/services/internal/decide"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/webhook/internal/review"
)

const (
	// maxTurns is how many lists and previews are made at a time.
	maxTurns = 4
	// maxWaits is how many wait for an object at a time.
	maxWaits = 32
	// maxHolders is how many are looked for who may do something.
	maxHolders = 100_000
	// maxPermissions is how many an answer lists, unless one row has more.
	maxPermissions = 20_000
)

// server answers AccessService.
type server struct {
	state *state
	view  *view.View
	// decider says who may.
	decider Decider
	// cluster is the one whose objects are asked about, store the name of its Store of IAM.
	cluster, store string
	// staleness is how old the state may be that is answered from.
	staleness time.Duration
	// rules say what is believed of a request.
	rules *review.Rules
	// fetch reads an object at the API server, nil if there is none.
	fetch func(context.Context, event.Key) ([]byte, error)
	turns *rpc.Turns
	// waits are the turns of who waits for an object.
	waits *rpc.Turns
}

var _ accessv1connect.AccessServiceHandler = (*server)(nil)

// handler mounts s. It asks of a caller what the API server would: the right to ask what others may,
// and none to ask about themselves.
func (s *server) handler() rpc.Handler {
	return rpc.NewHandler[accessv1connect.AccessServiceHandler](accessv1connect.AccessServiceName, accessv1connect.NewAccessServiceHandler, s,
		map[string]rpc.Access{
			accessv1connect.AccessServiceCheckAccessProcedure:            others,
			accessv1connect.AccessServiceExplainAccessProcedure:          others,
			accessv1connect.AccessServiceWhoCanProcedure:                 others,
			accessv1connect.AccessServiceWhatCanProcedure:                others,
			accessv1connect.AccessServicePreviewBindingProcedure:         others,
			accessv1connect.AccessServiceListProtectedResourcesProcedure: list,
			accessv1connect.AccessServiceGetModelStatusProcedure:         list,
		}).Own(s.isOwn)
}

// others is the right to ask what others may.
func others(any) (rpc.Right, error) {
	return rpc.Right{Verb: "create", GroupResource: event.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}}, nil
}

// list is the right to know what is protected. Who has an object looked up at the API server needs that to ask about others.
func list(request any) (rpc.Right, error) {
	if r, ok := request.(interface{ GetAtLeast() *accessv1.AtLeast }); ok && r.GetAtLeast().GetObject() != nil {
		return others(request)
	}
	return rpc.Right{Verb: "list", GroupResource: kinds.ProtectedResources().GroupResource}, nil
}

// ready is the index, and the revision that it holds at least: it is taken before the answer.
func (s *server) ready(ctx context.Context, least *accessv1.AtLeast) (x *decide.Index, revision string, err error) {
	if least.GetRevision() != "" {
		sequence, began, err := topology.ParseRevision(least.GetRevision())
		if err != nil {
			return nil, "", rpc.Invalid("at_least: %w", err)
		}
		if err := s.view.Await(ctx, sequence, began); err != nil {
			return nil, "", rpc.Incomplete(err)
		}
	}
	if least.GetObject() != nil {
		if err := s.awaitObject(ctx, event.KeyOf(least.GetObject())); err != nil {
			return nil, "", err
		}
	}
	if err := s.fresh(); err != nil { // Asked first: an index from before the view was read anew is never fresh.
		return nil, "", rpc.Incomplete(err)
	}
	revision = s.view.Revision()
	x, err = s.state.index()
	return x, revision, rpc.Incomplete(err)
}

// fresh says what the state lacks, or that it may be too old: the stream can be read to its end while nobody writes to it.
func (s *server) fresh() error {
	if err := s.view.Complete(); err != nil {
		return err
	}
	if age := s.view.Age(); age > s.staleness {
		return fmt.Errorf("%w: it may be older than %s (--max-staleness), by the heartbeats of the watcher", view.ErrIncomplete, s.staleness)
	}
	return nil
}

// registry is what is registered, as long as questions can be answered.
func (s *server) registry() (*iam.Registry, error) {
	if err := s.fresh(); err != nil {
		return nil, err
	}
	x, err := s.state.index()
	if err != nil {
		return nil, err
	}
	return x.Registry(), nil
}

func (s *server) awaitObject(ctx context.Context, key event.Key) error {
	key.Cluster = s.cluster
	if _, ok := s.state.kinds[key.GroupResource]; !ok {
		return rpc.Invalid("at_least: webhook asks the API server about objects of IAM alone, and not of %s: name a revision", key.GroupResource)
	}
	giveBack, err := s.waits.Take(ctx)
	if err != nil {
		return err
	}
	defer giveBack()
	object, err := s.fetch(ctx, key)
	if err != nil {
		return err
	}
	return rpc.Incomplete(s.state.await(ctx, key, object))
}

// CheckAccess implements AccessService.
func (s *server) CheckAccess(ctx context.Context, r *accessv1.CheckAccessRequest) (*accessv1.CheckAccessResponse, error) {
	x, revision, err := s.ready(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	who, err := s.asked(ctx, r)
	if err != nil {
		return nil, err
	}
	q := s.question(x, who, r.GetVerb(), r.GetResource())
	answer := &accessv1.CheckAccessResponse{Permission: q.Permission, Revision: revision, NoNamespace: s.lacksNamespace(q)}
	why, allowed, err := decideAtLeast(ctx, s.decider, x, q, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	if allowed {
		answer.Allowed, answer.Grant = true, grantMessage(why)
	}
	return answer, nil
}

// ExplainAccess implements AccessService.
func (s *server) ExplainAccess(ctx context.Context, r *accessv1.ExplainAccessRequest) (*accessv1.ExplainAccessResponse, error) {
	x, revision, err := s.ready(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	who, err := s.asked(ctx, r)
	if err != nil {
		return nil, err
	}
	giveBack, err := s.turns.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	q := s.question(x, who, r.GetVerb(), r.GetResource())
	e := x.Explain(q)
	if caller, known := rpc.CallerOf(ctx); known && s.isOwn(caller, r) {
		e.NoObject, e.Truncated = false, false // Else everybody could find out what there is.
	}
	answer := &accessv1.ExplainAccessResponse{
		Allowed: e.Allowed, Permission: q.Permission, Unregistered: e.Unregistered, NoSubject: e.NoSubject, NoObject: e.NoObject,
		Inherits: messages(e.Inherits, nameMessage), Path: messages(e.Path, placeMessage), Lacking: messages(e.Lacking, grantMessage), Revision: revision,
		Truncated: e.Truncated, NoNamespace: s.lacksNamespace(q),
	}
	if e.Allowed {
		answer.Grant, answer.Membership = grantMessage(e.Proof), optional(e.Membership)
	}
	return answer, nil
}

func messages[T, M any](all []T, message func(T) M) []M {
	list := make([]M, 0, len(all))
	for _, item := range all {
		list = append(list, message(item))
	}
	return slices.Clip(list)
}
