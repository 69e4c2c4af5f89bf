package mirror

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/tuple-sync/mirror/plan"
)

// record says in a membership for whom it is, once there is a User of the name, whatever becomes of the membership: nobody
// gets anything by it before, and another of the name shall not inherit it.
func (r *Reconciler) record(ctx context.Context, p Pass) error {
	return reconcile.Retry(p.Key, func() error {
		m, user := r.State.unrecorded(p.Key.owner)
		if user == nil {
			return nil
		}
		says := r.State.memberships.statement(m)
		if err := r.Confirmer.Confirm(ctx, says); err != nil {
			return err
		}
		uid, err := r.present(ctx, user)
		if uid == "" || err != nil {
			return err
		}
		fields := membershipStatus{
			User:       &iamv1alpha1.Member{Name: user.Name, UID: uid},
			Conditions: condition.Apply(m.Value.Status.Conditions, plan.GroupMembershipTypes(), 0, metav1.Time{}),
		}
		now, err := r.Status.Apply(ctx, p.Reporter, r.State.memberships.cfg.kind, m.Change, fields)
		if err != nil {
			if errors.Is(err, kube.ErrNotFound) {
				return nil // The event that says so is on its way.
			}
			return err
		}
		for _, object := range r.State.own(p.Key.owner) {
			p.Enqueue(changes, Key{sort: tuples, object: object})
		}
		p.Enqueue(statuses, Key{sort: status, owner: p.Key.owner})
		return r.Confirmer.Learn(ctx, says, now)
	})
}

// present is the UID that a User of the name has now, whatever was heard before of one; empty if there is none any more, or one that is going.
func (r *Reconciler) present(ctx context.Context, user *iamv1alpha1.User) (uid string, err error) {
	seen, _ := r.State.users.last(r.State.users.key("", user.Name))
	now, err := r.Cluster.Newest(ctx, kinds.Users(), seen.change)
	if err != nil || now.Deleted {
		return "", err
	}
	if now.UID != seen.change.UID {
		err = r.View.Apply(ctx, r.View.Dated(now))
	}
	var is metav1.PartialObjectMetadata
	if err = errors.Join(err, now.Decode(&is)); err != nil || is.DeletionTimestamp != nil {
		return "", err
	}
	return now.UID, nil
}

// unrecorded is a membership in which it is to be recorded for whom it is, with that User; nil if there is none.
func (s *State) unrecorded(k event.Key) (m view.Object[iamv1alpha1.GroupMembership], user *iamv1alpha1.User) {
	m, live := s.memberships.rows.Get(k)
	if !live || m.Value.DeletionTimestamp != nil || m.Value.Status.User != nil && m.Value.Status.User.Name == m.Value.Spec.UserRef.Name {
		return m, nil
	}
	if user = s.users.get("", m.Value.Spec.UserRef.Name); user != nil && user.DeletionTimestamp != nil {
		return m, nil
	}
	return m, user
}
