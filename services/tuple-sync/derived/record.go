package derived

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
	"github.com/entail-dev/entail/services/tuple-sync/derived/plan"
)

// projectStatusFields is our part of a Project's status.
type projectStatusFields struct {
	Organization *resourcemanagerv1alpha1.ProjectOrganization `json:"organization,omitempty"`
	Conditions   []metav1.Condition                           `json:"conditions,omitempty"`
}

// unrecordedReference is an object that names another one, whose UID its status does not record yet.
type unrecordedReference struct {
	sourceObject

	kind kinds.Kind
	// named is the object that it names.
	named sourceObject
	// fields returns the status to write.
	fields func(uid string) any
}

// recordUID writes the UID of the named user into a membership, or of the organization into a project. It does so once the
// named object exists. Without the record nothing is granted, so that a later object of the same name inherits nothing.
func (r *Reconciler) recordUID(ctx context.Context, p ReconcileRequest) error {
	return reconcile.RetryWhileStale(p.Key, func() error {
		u := r.State.findUnrecordedReference(p.Key.owner)
		if u == nil {
			return nil
		}
		uid, err := r.readPresentUID(ctx, u.named)
		if uid == "" || err != nil {
			return err
		}
		now, err := r.Status.ApplyOwnFields(ctx, p.Reporter, u.kind, u.change, u.fields(uid))
		if err != nil {
			if errors.Is(err, kube.ErrNotFound) {
				return nil // The event of the deletion follows.
			}
			return err
		}
		for _, object := range r.State.affectedOpenFGAObjects(p.Key.owner, r.copy.canHoldTuples) {
			p.Enqueue(changes, Key{sort: tuples, object: object})
		}
		p.Enqueue(statuses, Key{sort: status, owner: p.Key.owner})
		return r.Verifier.VerifyWriteAnswer(ctx, u.expected, now)
	})
}

// readPresentUID reads the UID of the object that has the name now from the API server. It returns "" if none exists, or if it
// is being deleted.
func (r *Reconciler) readPresentUID(ctx context.Context, seen sourceObject) (uid string, err error) {
	kind, _ := kinds.ByResource(seen.change.Key.GroupResource)
	now, err := r.Cluster.ReadNewest(ctx, kind, seen.change)
	if err != nil || now.Deleted {
		return "", err
	}
	if now.UID != seen.change.UID {
		err = r.View.Apply(ctx, r.View.WithCurrentEpoch(now))
	}
	var is metav1.PartialObjectMetadata
	if err = errors.Join(err, now.Decode(&is)); err != nil || is.DeletionTimestamp != nil {
		return "", err
	}
	return now.UID, nil
}

// isUIDRecordingKind reports whether objects of a kind record a UID.
func isUIDRecordingKind(kind event.GroupResource) bool {
	return kind == kinds.GroupMemberships().GroupResource || kind == kinds.Projects().GroupResource
}

// findUnrecordedReference returns an object that must record a UID. It returns nil if the record exists already, or the named object
// does not exist.
func (s *State) findUnrecordedReference(k event.Key) *unrecordedReference {
	if !isUIDRecordingKind(k.GroupResource) {
		return nil
	}
	u := &unrecordedReference{}
	var live, lives bool
	if u.sourceObject, live = s.tableOf(k.GroupResource).liveOrDeleted(k); !live || !u.alive {
		return nil
	}
	u.kind, _ = kinds.ByResource(k.GroupResource)
	var named event.Key
	if k.GroupResource == kinds.Projects().GroupResource {
		named = s.fillProjectRecord(k, u)
	} else {
		named = s.fillMembershipRecord(k, u)
	}
	if u.fields == nil {
		return nil
	}
	if u.named, lives = s.tableOf(named.GroupResource).liveOrDeleted(named); !lives || !u.named.alive {
		return nil
	}
	return u
}

func (s *State) fillMembershipRecord(k event.Key, u *unrecordedReference) (user event.Key) {
	m, _ := s.memberships.rows.Get(k)
	name, first := m.Value.Spec.UserRef.Name, m.Value.Status.User
	if first == nil || first.Name != name {
		u.fields = func(uid string) any {
			return membershipStatus{
				User:       &iamv1alpha1.Member{Name: name, UID: uid},
				Conditions: newStatusUpdate(0, m.Value.Status.Conditions, plan.GroupMembershipConditionTypes()).before,
			}
		}
	}
	return s.users.keyOf("", name)
}

func (s *State) fillProjectRecord(k event.Key, u *unrecordedReference) (organization event.Key) {
	p, _ := s.projects.rows.Get(k)
	name, first := p.Value.Spec.OwnerRef.Name, p.Value.Status.Organization
	if first == nil || first.Name != name {
		u.fields = func(uid string) any {
			return projectStatusFields{
				Organization: &resourcemanagerv1alpha1.ProjectOrganization{Name: name, UID: uid},
				Conditions:   condition.MergeConditions(p.Value.Status.Conditions, []string{iamv1alpha1.Ready}, 0, metav1.Time{}),
				// Apply deletes omitted conditions.
			}
		}
	}
	return s.organizations.keyOf("", name)
}
