// Package store serves StoreService: from the view, and from OpenFGA for requests about models.
package store

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/policymodule"
	"github.com/entail-dev/entail/services/store-sync/store"
)

// Server implements StoreService.
type Server struct {
	state    *store.State
	merges   *store.MergeCache
	policies *policymodule.Provider
	fga      *fga.Client
	complete func() error
	// limiter bounds previews, because one may use a core for a second.
	limiter *rpc.Limiter
}

// New returns a server. complete returns an error while the view is not complete.
func New(state *store.State, merges *store.MergeCache, policies *policymodule.Provider, openFGA *fga.Client, complete func() error) *Server {
	return &Server{state: state, merges: merges, policies: policies, fga: openFGA, complete: complete, limiter: rpc.NewLimiter(1)}
}

var _ storev1connect.StoreServiceHandler = (*Server)(nil)

// Access returns the rights that callers need. They are the same as for kubectl: to read or list the Stores of the
// request.
func Access() map[string]rpc.Access {
	stores := kinds.Stores().GroupResource
	return map[string]rpc.Access{
		storev1connect.StoreServiceListStoresProcedure:   rpc.Can("list", stores),
		storev1connect.StoreServiceGetStoreProcedure:     rpc.CanNamed("get", stores, (*storev1.GetStoreRequest).GetName),
		storev1connect.StoreServiceGetModelProcedure:     rpc.CanNamed("get", stores, (*storev1.GetModelRequest).GetName),
		storev1connect.StoreServicePreviewModelProcedure: rpc.CanNamed("get", stores, (*storev1.PreviewModelRequest).GetName),
		storev1connect.StoreServiceDiffModelProcedure:    rpc.CanNamed("get", stores, (*storev1.DiffModelRequest).GetName),
	}
}

// ListStores returns one page of this cluster's Stores, by name.
func (s *Server) ListStores(_ context.Context, request *storev1.ListStoresRequest) (*storev1.ListStoresResponse, error) {
	if err := rpc.Incomplete(s.complete()); err != nil {
		return nil, err
	}
	var all []module.Store
	for _, o := range s.state.Shared.Stores.All() {
		if o.Key.Cluster == s.state.Shared.Cluster {
			all = append(all, o)
		}
	}
	name := func(o module.Store) string { return o.Key.Name }
	page, next, err := rpc.Page(all, name, request)
	if err != nil {
		return nil, err
	}
	response := &storev1.ListStoresResponse{NextPageToken: next}
	for _, o := range page {
		response.Stores = append(response.Stores, storeMessage(o.Value))
	}
	return response, nil
}

// GetStore returns the state of one Store.
func (s *Server) GetStore(_ context.Context, request *storev1.GetStoreRequest) (*storev1.GetStoreResponse, error) {
	found, err := s.findStore(request.GetName())
	if err != nil {
		return nil, err
	}
	return &storev1.GetStoreResponse{Store: storeMessage(found.Value)}, nil
}

// findStore returns the Store with a name in this cluster.
func (s *Server) findStore(name string) (module.Store, error) {
	return rpc.Find(s.complete, s.state.Shared.Stores.Get, module.StoreKey(name, s.state.Shared.Cluster))
}

func storeMessage(s *corev1alpha1.Store) *storev1.Store {
	return &storev1.Store{
		Name: s.Name, StoreId: s.Status.StoreID, AuthorizationModelId: s.Status.AuthorizationModelID,
		Ready:   meta.IsStatusConditionTrue(s.Status.Conditions, corev1alpha1.Ready),
		Message: readyRemark(s.Status.Conditions), Generation: s.Generation, ObservedGeneration: s.Status.ObservedGeneration,
		TupleCount: s.Status.TupleCount, Modules: moduleMessages(s), CreatedAt: timestamppb.New(s.CreationTimestamp.Time),
	}
}

func moduleMessages(s *corev1alpha1.Store) []*storev1.Module {
	modules := make([]*storev1.Module, len(s.Status.Modules))
	for i, m := range s.Status.Modules {
		modules[i] = &storev1.Module{Name: m.Name, Source: m.Source, State: string(m.State), Message: m.Message}
	}
	return modules
}

// readyRemark returns why a Store is not ready. For a ready Store it returns a warning from its other conditions, or "".
func readyRemark(conditions []metav1.Condition) string {
	ready := meta.FindStatusCondition(conditions, corev1alpha1.Ready)
	if ready == nil {
		return cmp.Or(failingMessage(conditions, corev1alpha1.StoreSynced, corev1alpha1.ModelSynced), "waiting for its first pass")
	}
	if ready.Status != metav1.ConditionTrue {
		return messageSince(ready)
	}
	if message := failingMessage(conditions, corev1alpha1.NameUnique, corev1alpha1.NameInSync); message != "" {
		return message
	}
	if c := meta.FindStatusCondition(conditions, corev1alpha1.ModulesInSync); c != nil && c.Status == metav1.ConditionFalse {
		return messageSince(c)
	}
	return ""
}

// failingMessage returns the message of the first condition that is false, or "".
func failingMessage(conditions []metav1.Condition, types ...string) string {
	for _, typ := range types {
		if c := meta.FindStatusCondition(conditions, typ); c != nil && c.Status == metav1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// messageSince returns the message of a condition with the time of its last transition.
func messageSince(c *metav1.Condition) string {
	if c.LastTransitionTime.IsZero() {
		return c.Message
	}
	return c.Message + ", since " + c.LastTransitionTime.UTC().Format(time.RFC3339)
}
