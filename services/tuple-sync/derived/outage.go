package derived

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/setup"
)

// WriteOutageStatuses writes into the declared objects that wait for a key that OpenFGA is unavailable. It skips objects that
// are in step. The status update enqueues their keys again, so their status recovers later.
func (r *Reconciler) WriteOutageStatuses(ctx context.Context, key Key, why setup.Outage) error {
	p := controller.NewRequest(r.View, key, false)
	var errs []error
	for _, k := range r.objectsWaitingForKey(key) {
		f, s := r.buildOutageStatus(ctx, k, why.Message())
		if s == nil {
			continue
		}
		if err := why.WaitForStatusRateLimit(ctx); err != nil {
			return err
		}
		kind, _ := kinds.ByResource(k.GroupResource)
		_, err := r.Status.ApplyOwnFields(ctx, p, kind, f.change, s.fields)
		errs = append(errs, err)
	}
	return fault.Join(errs...)
}

// objectsWaitingForKey returns the declared objects whose status depends on a key, or that wait for its OpenFGA object.
func (r *Reconciler) objectsWaitingForKey(key Key) (owners []event.Key) {
	switch key.sort {
	case spread, record, status:
		return []event.Key{key.owner}
	case tuples:
		for _, waiting := range r.copy.waitingKeys(key.object) {
			owners = append(owners, waiting.owner)
		}
	case tail, back, whole, none:
	}
	return owners
}

// buildOutageStatus returns the status of an object during an outage, or nil if nothing is to be written. That is so for objects
// that are in step or already report the outage. While the content of OpenFGA is unknown, a status of the present
// generation stays.
func (r *Reconciler) buildOutageStatus(ctx context.Context, k event.Key, message string) (sourceObject, *statusUpdate) {
	f, live := r.State.tableOf(k.GroupResource).liveOrDeleted(k)
	if !live || !f.alive {
		return f, nil
	}
	s := r.buildStatus(nil, k, condition.Condition{
		Type: iamv1alpha1.Ready, Status: metav1.ConditionUnknown,
		Reason: corev1alpha1.BackendUnavailable, Message: message,
	})
	if s == nil {
		return f, nil
	}
	ready := meta.FindStatusCondition(s.before, iamv1alpha1.Ready)
	said := ready != nil && ready.ObservedGeneration == f.change.Generation
	if said && ready.Reason == corev1alpha1.BackendUnavailable {
		return f, nil
	}
	n, err := r.declaredSnapshot(ctx)
	switch {
	case err != nil || n == nil || !r.copy.isReplicaOf(n.of.storeID):
		if said {
			return f, nil
		}
	case r.waitUnlessSynced(n, Key{sort: status, owner: k}):
		return f, nil
	}
	return f, s
}
