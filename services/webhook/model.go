package webhook

import (
	"context"
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/apimachinery/pkg/api/meta"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// GetModelStatus implements AccessService.
func (s *accessServer) GetModelStatus(ctx context.Context, r *accessv1.GetModelStatusRequest) (*accessv1.GetModelStatusResponse, error) {
	x, revision, err := s.awaitIndexAtLeast(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	release, err := s.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	registry := x.Registry()
	types := registry.TypeDefinitions()
	answer := &accessv1.GetModelStatusResponse{
		Store: s.store, Kinds: int32(len(registry.Kinds())), Types: int32(len(types)), Bytes: int32(iam.EncodedSize(types)),
		Age: durationpb.New(s.view.Staleness()), Revision: revision,
	}
	for _, k := range registry.Kinds() {
		answer.Permissions += int32(len(k.Permissions))
	}
	store := s.iamStore()
	if store == nil {
		answer.Message = "there is no such Store yet: store-sync creates it"
		return answer, nil
	}
	answer.StoreId, answer.AuthorizationModelId = store.Status.StoreID, store.Status.AuthorizationModelID
	if c := meta.FindStatusCondition(store.Status.Conditions, corev1alpha1.ModelSynced); c != nil {
		answer.Synced = c.Status == "True" && c.ObservedGeneration == store.Generation
		answer.Message = c.Reason + ": " + c.Message
	}
	if answer.GetSynced() && !isMadeFromRegistry(store.Status.Modules, registry) {
		answer.Synced, answer.Message = false, "the model in OpenFGA is not up to date with the ProtectedResources yet"
	}
	return answer, nil
}

// iamStore returns the Store of IAM, or nil.
func (s *accessServer) iamStore() *corev1alpha1.Store {
	store, live := s.state.stores.Get(event.Key{Cluster: s.cluster, GroupResource: kinds.Stores().GroupResource, Name: s.store})
	if !live || store.Value == nil || store.Value.DeletionTimestamp != nil {
		return nil
	}
	return store.Value
}

// isMadeFromRegistry reports whether the IAM module in a Store's model was made from this registry. An empty registry makes no
// module.
func isMadeFromRegistry(modules []corev1alpha1.ModuleStatus, registry *iam.Registry) bool {
	i := slices.IndexFunc(modules, func(m corev1alpha1.ModuleStatus) bool { return m.Source == iam.Module })
	return i < 0 && len(registry.Kinds()) == 0 || i >= 0 && modules[i].Digest == iam.TypesDigest(registry.TypeDefinitions())
}
