package mirror

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/tuple-sync/mirror/plan"
)

// projectStatus is the part of a Project's status that is ours.
type projectStatus struct {
	Organization *resourcemanagerv1alpha1.ProjectOrganization `json:"organization,omitempty"`
	Conditions   []metav1.Condition                           `json:"conditions,omitempty"`
}

// unrecorded is an object that names another one, in which it is to be recorded which one of that name it means.
type unrecorded struct {
	found

	kind kinds.Kind
	// named is the other one.
	named found
	// fields are what the status is to say.
	fields func(uid string) any
}

// record says in a membership for whom it is, and in a project to whom it belongs, once there is one of the name, whatever
// becomes of the object: nobody gets anything by it before, and another of the name shall not inherit it.
func (r *Reconciler) record(ctx context.Context, p Pass) error {
	return reconcile.Retry(p.Key, func() error {
		u := r.State.unrecorded(p.Key.owner)
		if u == nil {
			return nil
		}
		if err := r.Confirmer.Confirm(ctx, u.says); err != nil {
			return err
		}
		uid, err := r.present(ctx, u.named)
		if uid == "" || err != nil {
			return err
		}
		now, err := r.Status.Apply(ctx, p.Reporter, u.kind, u.change, u.fields(uid))
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
		return r.Confirmer.Learn(ctx, u.says, now)
	})
}

// present is the UID that the object of a name has now, whatever was heard before of one; empty if there is none any more, or one
// that is going.
func (r *Reconciler) present(ctx context.Context, seen found) (uid string, err error) {
	kind, _ := kinds.Of(seen.change.Key.GroupResource)
	now, err := r.Cluster.Newest(ctx, kind, seen.change)
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

// records says whether something is recorded in objects of a kind.
func records(kind event.GroupResource) bool {
	return kind == kinds.GroupMemberships().GroupResource || kind == kinds.Projects().GroupResource
}

// unrecorded is an object in which something is to be recorded; nil if there is nothing, or there is nobody whom it can mean.
func (s *State) unrecorded(k event.Key) *unrecorded {
	if !records(k.GroupResource) {
		return nil
	}
	u := &unrecorded{}
	var live, lives bool
	if u.found, live = s.kind(k.GroupResource).last(k); !live || !u.alive {
		return nil
	}
	u.kind, _ = kinds.Of(k.GroupResource)
	var named event.Key
	if k.GroupResource == kinds.Projects().GroupResource {
		named = s.ofProject(k, u)
	} else {
		named = s.ofMembership(k, u)
	}
	if u.fields == nil {
		return nil
	}
	if u.named, lives = s.kind(named.GroupResource).last(named); !lives || !u.named.alive {
		return nil
	}
	return u
}

func (s *State) ofMembership(k event.Key, u *unrecorded) (user event.Key) {
	m, _ := s.memberships.rows.Get(k)
	name, first := m.Value.Spec.UserRef.Name, m.Value.Status.User
	if first == nil || first.Name != name {
		u.fields = func(uid string) any {
			return membershipStatus{
				User:       &iamv1alpha1.Member{Name: name, UID: uid},
				Conditions: newSaid(0, m.Value.Status.Conditions, plan.GroupMembershipTypes()).before,
			}
		}
	}
	return s.users.key("", name)
}

func (s *State) ofProject(k event.Key, u *unrecorded) (organization event.Key) {
	p, _ := s.projects.rows.Get(k)
	name, first := p.Value.Spec.OwnerRef.Name, p.Value.Status.Organization
	if first == nil || first.Name != name {
		u.fields = func(uid string) any {
			return projectStatus{
				Organization: &resourcemanagerv1alpha1.ProjectOrganization{Name: name, UID: uid},
				Conditions:   condition.Apply(p.Value.Status.Conditions, []string{iamv1alpha1.Ready}, 0, metav1.Time{}), // Left out, what others say would go.
			}
		}
	}
	return s.organizations.key("", name)
}
