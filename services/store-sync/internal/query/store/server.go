// Package store serves StoreService: from the informer, and from OpenFGA for requests about models.
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
	limiter *rpc.CallLimiter
}

// New returns a server. complete returns an error while the informer is not complete.
func New(state *store.State, merges *store.MergeCache, policies *policymodule.Provider, openFGA *fga.Client, complete func() error) *Server {
	return &Server{state: state, merges: merges, policies: policies, fga: openFGA, complete: complete, limiter: rpc.NewCallLimiter(1)}
}

var _ storev1connect.StoreServiceHandler = (*Server)(nil)

// RequiredAccess returns the rights that callers need. They are the same as for kubectl: to read or list the Stores of the
// request.
func RequiredAccess() map[string]rpc.AccessRule {
	stores := kinds.Stores().GroupResource
	return map[string]rpc.AccessRule{
		storev1connect.StoreServiceListStoresProcedure:   rpc.RequireVerb("list", stores),
		storev1connect.StoreServiceGetStoreProcedure:     rpc.RequireVerbOnName("get", stores, (*storev1.GetStoreRequest).GetName),
		storev1connect.StoreServiceGetModelProcedure:     rpc.RequireVerbOnName("get", stores, (*storev1.GetModelRequest).GetName),
		storev1connect.StoreServicePreviewModelProcedure: rpc.RequireVerbOnName("get", stores, (*storev1.PreviewModelRequest).GetName),
		storev1connect.StoreServiceDiffModelProcedure:    rpc.RequireVerbOnName("get", stores, (*storev1.DiffModelRequest).GetName),
	}
}

// ListStores returns one page of this cluster's Stores, by name.
func (s *Server) ListStores(_ context.Context, request *storev1.ListStoresRequest) (*storev1.ListStoresResponse, error) {
	if err := rpc.IncompleteError(s.complete()); err != nil {
		return nil, err
	}
	var all []module.StoreObject
	for _, o := range s.state.Shared.Stores.All() {
		if o.Key.Cluster == s.state.Shared.Cluster {
			all = append(all, o)
		}
	}
	name := func(o module.StoreObject) string { return o.Key.Name }
	page, next, err := rpc.Paginate(all, name, request)
	if err != nil {
		return nil, err
	}
	response := &storev1.ListStoresResponse{NextPageToken: next}
	for _, o := range page {
		response.Stores = append(response.Stores, storeToProto(o.Value))
	}
	return response, nil
}

// GetStore returns the state of one Store.
func (s *Server) GetStore(ctx context.Context, request *storev1.GetStoreRequest) (*storev1.GetStoreResponse, error) {
	found, err := s.findStore(ctx, request.GetName())
	if err != nil {
		return nil, err
	}
	return &storev1.GetStoreResponse{Store: storeToProto(found.Value)}, nil
}

// findStore returns the Store with a name in this cluster. If there is none, the error suggests similar names.
func (s *Server) findStore(ctx context.Context, name string) (module.StoreObject, error) {
	key := module.StoreKey(name, s.state.Shared.Cluster)
	found, err := rpc.FindObject(s.complete, s.state.Shared.Stores.Get, key)
	return found, rpc.AddNameSuggestions(ctx, err, key.GroupResource, name, func() (names []string) {
		for _, o := range s.state.Shared.Stores.All() {
			if o.Key.Cluster == key.Cluster {
				names = append(names, o.Key.Name)
			}
		}
		return names
	})
}

func storeToProto(s *corev1alpha1.Store) *storev1.Store {
	return &storev1.Store{
		Name: s.Name, StoreId: s.Status.StoreID, AuthorizationModelId: s.Status.AuthorizationModelID,
		Ready:   meta.IsStatusConditionTrue(s.Status.Conditions, corev1alpha1.Ready),
		Message: readinessMessage(s.Status.Conditions), Generation: s.Generation, ObservedGeneration: s.Status.ObservedGeneration,
		TupleCount: s.Status.TupleCount, Modules: modulesToProto(s), CreatedAt: timestamppb.New(s.CreationTimestamp.Time),
	}
}

func modulesToProto(s *corev1alpha1.Store) []*storev1.Module {
	modules := make([]*storev1.Module, len(s.Status.Modules))
	for i, m := range s.Status.Modules {
		modules[i] = &storev1.Module{Name: m.Name, Source: m.Source, State: string(m.State), Message: m.Message}
	}
	return modules
}

// readinessMessage returns why a Store is not ready. For a ready Store it returns a warning from its other conditions, or "".
func readinessMessage(conditions []metav1.Condition) string {
	ready := meta.FindStatusCondition(conditions, corev1alpha1.Ready)
	if ready == nil {
		return cmp.Or(falseConditionMessage(conditions, corev1alpha1.StoreSynced, corev1alpha1.ModelSynced), "store-sync has not processed it yet")
	}
	if ready.Status != metav1.ConditionTrue {
		return messageWithTransitionTime(ready)
	}
	if message := falseConditionMessage(conditions, corev1alpha1.NameUnique, corev1alpha1.NameInSync); message != "" {
		return message
	}
	if c := meta.FindStatusCondition(conditions, corev1alpha1.ModulesInSync); c != nil && c.Status == metav1.ConditionFalse {
		return messageWithTransitionTime(c)
	}
	return ""
}

// falseConditionMessage returns the message of the first condition that is false, or "".
func falseConditionMessage(conditions []metav1.Condition, types ...string) string {
	for _, typ := range types {
		if c := meta.FindStatusCondition(conditions, typ); c != nil && c.Status == metav1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// messageWithTransitionTime returns the message of a condition with the time of its last transition.
func messageWithTransitionTime(c *metav1.Condition) string {
	if c.LastTransitionTime.IsZero() {
		return c.Message
	}
	return c.Message + ", since " + c.LastTransitionTime.UTC().Format(time.RFC3339)
}
