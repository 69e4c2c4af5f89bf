// Package query answers queries about the progress of changes. It reads only NATS and the API server, so every replica
// can answer, leader or not.
package query

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher/internal/source"
	"github.com/entail-dev/entail/services/watcher/internal/trail"
)

// Source reads the API server.
type Source interface {
	Get(ctx context.Context, kind kinds.Kind, namespace, name string) (source.Object, error)
	ShortNames(ctx context.Context, kind kinds.Kind) ([]string, error)
}

// Config holds the parts of a server. All fields are required.
type Config struct {
	Source       Source
	Publisher    *publish.Publisher
	Trail        *trail.StreamReader
	Cluster      string
	Kinds        []kinds.Kind
	TombstoneTTL time.Duration
	// Resume ends the halt of all services, and returns its reason.
	Resume func(ctx context.Context) (reason string, err error)
}

// Server implements SyncService.
type Server struct {
	cfg   Config
	names *kindNames
}

var _ syncv1connect.SyncServiceHandler = (*Server)(nil)

// New returns a server. [Server.Run] keeps its names up to date.
func New(cfg Config) *Server {
	return &Server{cfg: cfg, names: newKindNames(cfg.Kinds)}
}

// Run reads the short names of kinds until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	s.names.pollShortNames(ctx, s.cfg.Source)
	return nil
}

// Handler returns the handler with the rights that callers need. A caller that may read an object may trace it. The
// paths /entail/status, /entail/deadletters, /entail/replay and /entail/bus/resume guard the other calls.
func (s *Server) Handler() rpc.Handler {
	return rpc.NewHandler(syncv1connect.SyncServiceName, syncv1connect.NewSyncServiceHandler, syncv1connect.SyncServiceHandler(s), map[string]rpc.AccessRule{
		syncv1connect.SyncServiceTraceObjectProcedure:       s.requiredTraceRight,
		syncv1connect.SyncServiceGetStatusProcedure:         rpc.RequireVerbOnPath("get", "/entail/status"),
		syncv1connect.SyncServiceListDeadLettersProcedure:   rpc.RequireVerbOnPath("get", "/entail/deadletters"),
		syncv1connect.SyncServiceGetDeadLetterProcedure:     rpc.RequireVerbOnPath("get", "/entail/deadletters"),
		syncv1connect.SyncServiceDiscardDeadLetterProcedure: rpc.RequireVerbOnPath("delete", "/entail/deadletters"),
		syncv1connect.SyncServiceReplayProcedure:            rpc.RequireVerbOnPath("post", "/entail/replay"),
		syncv1connect.SyncServiceResumeProcedure:            rpc.RequireVerbOnPath("post", "/entail/bus/resume"),
	})
}

func (s *Server) requiredTraceRight(request any) (rpc.RequiredRight, error) {
	r, ok := request.(*syncv1.TraceObjectRequest)
	if !ok {
		return rpc.RequiredRight{}, errors.New("access rule of TraceObject got another request")
	}
	key, err := s.requestedKey(r)
	return rpc.RequiredRight{Verb: "get", GroupResource: key.GroupResource, Namespace: key.Namespace, Name: key.Name}, err
}

// requestedKey returns the key of the requested object. It ignores the namespace of a cluster-scoped kind, as kubectl
// does.
func (s *Server) requestedKey(r *syncv1.TraceObjectRequest) (event.Key, error) {
	kind, err := s.names.findKind(r.GetResource())
	key := event.Key{Cluster: s.cfg.Cluster, GroupResource: kind.GroupResource, Namespace: r.GetNamespace(), Name: r.GetName()}
	if kind.ClusterScoped {
		key.Namespace = ""
	}
	return key, err
}

// TraceObject returns the last change of an object and the results of the services for it.
func (s *Server) TraceObject(ctx context.Context, r *syncv1.TraceObjectRequest) (*syncv1.TraceObjectResponse, error) {
	key, err := s.requestedKey(r)
	if err != nil {
		return nil, err
	}
	last, err := s.cfg.Publisher.LastChange(ctx, key)
	switch {
	case errors.Is(err, publish.ErrNoMessage):
		return nil, rpc.NotFoundError("nothing was published about %s: it does not exist, or the watcher has not seen it", key)
	case errors.Is(err, publish.ErrMalformed):
		return nil, rpc.NotFoundError("the message about %s (sequence %d) cannot be read: entail replay publishes the object again", key, last.Sequence)
	case err != nil:
		return nil, err
	}
	results, err := s.cfg.Trail.LatestResults(ctx, key)
	if err != nil {
		return nil, err
	}
	streamID, err := s.cfg.Publisher.StreamID(ctx)
	if err != nil {
		return nil, err
	}
	c := last.Change
	operation := eventv1.Operation_OPERATION_UPSERT
	if c.Deleted {
		operation = eventv1.Operation_OPERATION_DELETE
	}
	response := &syncv1.TraceObjectResponse{
		Ref: key.ToObjectRef(), Uid: c.UID, ResourceVersion: c.ResourceVersion, Generation: c.Generation, Operation: operation,
		ObservedAt: timestamppb.New(c.ObservedAt), PublishedAt: timestamppb.New(last.PublishedAt), Sequence: last.Sequence,
		Revision: topology.FormatRevision(last.Sequence, streamID),
	}
	for _, result := range results {
		response.Steps = append(response.Steps, &syncv1.Step{Result: result, Current: isCoveringChange(result, c)})
	}
	return response, nil
}

// isCoveringChange reports whether a result covers the change c. A service publishes no result for a state that differs
// from the last one only in its status.
func isCoveringChange(result *eventv1.ResourceResult, c event.Change) bool {
	if result.GetUid() != c.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(result.GetResourceVersion(), c.ResourceVersion)
	return err == nil && order >= 0 || !c.Deleted && c.Generation > 0 && result.GetGeneration() >= c.Generation
}

// GetStatus returns the state of the stream, of all services and of all snapshots.
func (s *Server) GetStatus(ctx context.Context, _ *syncv1.GetStatusRequest) (*syncv1.GetStatusResponse, error) {
	bus, err := s.cfg.Trail.ChangesStreamState(ctx)
	if err != nil {
		return nil, err
	}
	progress, err := s.cfg.Trail.ListServiceProgress(ctx)
	if err != nil {
		return nil, err
	}
	response := &syncv1.GetStatusResponse{Objects: bus.Objects, LastSequence: bus.LastSequence}
	if last, _, err := s.cfg.Publisher.LastBarrier(ctx, s.cfg.Cluster); err == nil {
		response.Halted = last.GetHalted()
	}
	for _, p := range progress {
		service := &syncv1.Service{
			Name: p.Service, Pending: p.Pending, InFlight: p.InFlight, Redelivered: p.Redelivered, DeadLetters: p.Letters,
		}
		if !p.LastAckAt.IsZero() {
			service.LastAckAt = timestamppb.New(p.LastAckAt)
		}
		response.Services = append(response.Services, service)
		response.DeadLetters += p.Letters
	}
	for _, kind := range s.cfg.Kinds {
		marker, err := s.cfg.Publisher.LastMarker(ctx, s.cfg.Cluster, kind.GroupResource)
		if errors.Is(err, publish.ErrNoMessage) || errors.Is(err, publish.ErrMalformed) {
			marker, err = &eventv1.SnapshotMarker{Cluster: s.cfg.Cluster, Group: kind.Group, Resource: kind.Resource}, nil
		}
		if err != nil {
			return nil, err
		}
		current := marker.GetStream() == bus.Incarnation
		if kind.Optional && current && !marker.GetServed() {
			continue // An optional kind may be missing.
		}
		response.Snapshots = append(response.Snapshots, &syncv1.Snapshot{Marker: marker, Current: current})
	}
	return response, nil
}
