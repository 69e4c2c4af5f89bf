package opensearchsync

import (
	"cmp"
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// parallel bounds how many Secrets a run reads, or statuses it writes, at the same time.
const parallel = 16

// forEachParallel calls do for every item, up to parallel at a time, and joins the errors. It ends early when ctx ends.
func forEachParallel[T any](ctx context.Context, items []T, do func(T) error) error {
	var group sync.WaitGroup
	room, errs := make(chan struct{}, parallel), make([]error, len(items))
	for i, item := range items {
		room <- struct{}{}
		if errs[i] = fault.Unavailable(context.Cause(ctx)); errs[i] != nil {
			break
		}
		group.Go(func() {
			defer func() { <-room }()
			errs[i] = do(item)
		})
	}
	group.Wait()
	return fault.Join(errs...)
}

// toPlanObjects returns the input of the plan for a server. groups lists the existing action groups, or is nil where they do
// not matter.
func toPlanObjects(objects []declaredObject, server string, p *runPasswords, groups map[string]bool) []plan.DeclaredObject {
	var all []plan.DeclaredObject
	for _, o := range objects {
		uid := string(o.value.GetUID())
		in := plan.DeclaredObject{
			UID: uid, Source: o.value.GetAnnotations()[opensearchv1.SourceUIDAnnotation], Name: o.value.OpenSearchName(),
			Created: o.value.GetCreationTimestamp().Time, Leaving: o.isDeleting(), Gone: o.isDeleted(),
			Obstacle: cmp.Or(o.obstacleVerdict(groups), misreadNameObstacle(o, o.value.OpenSearchName())),
			Adopt:    o.value.GetAnnotations()[opensearchv1.AdoptAnnotation] == "true", Existing: o.hadEntityBefore(server),
			Synced: o.isConditionTrue(opensearchv1.Ready) || o.isConditionTrue(opensearchv1.OtherController), InStep: o.isSynced(server),
			Body: plan.DeclaredBody(o.value),
		}
		if user, ok := o.value.(*opensearchv1.OpensearchUser); ok {
			in.Approval = plan.ApprovalDigest(user)
			in.Approved = user.Annotations[opensearchv1.BindAnnotation] == in.Approval
		}
		if p != nil {
			in.Tag = p.tags[uid].text
			if verdict, missing := p.missing[uid]; missing {
				in.PasswordMissing = &verdict
			}
		}
		all = append(all, in)
	}
	return all
}

// isConditionTrue reports whether a condition of an object is true.
func (o declaredObject) isConditionTrue(condition string) bool {
	return meta.IsStatusConditionTrue(o.value.CommonStatus().Conditions, condition)
}

// isSynced reports whether the last status reports this generation of the object as ready on the server.
func (o declaredObject) isSynced(server string) bool {
	status := o.value.CommonStatus()
	return !o.isDeleting() && o.isConditionTrue(opensearchv1.Ready) && status.ObservedGeneration == o.value.GetGeneration() && status.ManagedServer == server
}

// obstacleVerdict returns why nothing can be written for an object: an obstacle, or values that OpenSearch could not use.
func (o declaredObject) obstacleVerdict(groups map[string]bool) *plan.Verdict {
	if o.obstacle != nil || o.isDeleting() {
		return o.obstacle
	}
	return plan.CheckPatternValues(o.value, groups)
}

func entityNameSet(listed map[string]plan.Entity) map[string]bool {
	all := map[string]bool{}
	for name := range listed {
		all[name] = true
	}
	return all
}

// knownActionGroups returns the action groups that entities of a kind may name. For roles these are the existing ones; for action
// groups also those about to be created. It returns nil for other kinds.
func knownActionGroups(kind plan.EntityKind, referred map[string]bool, actual map[string]plan.Entity, objects []declaredObject) map[string]bool {
	switch kind {
	case plan.Roles:
		return referred
	case plan.ActionGroups:
		all := entityNameSet(actual)
		for _, o := range objects {
			all[o.value.OpenSearchName()] = all[o.value.OpenSearchName()] || !o.isDeleting() && o.obstacleVerdict(nil) == nil
		}
		return all
	default:
		return nil
	}
}

// withGrants returns users with the grants of their server.
func withGrants(users []plan.DeclaredObject, grants plan.ProtectedGrants) []plan.DeclaredObject {
	for i := range users {
		users[i].Grants = grants
	}
	return users
}

// toPlanBindings returns the input of the mapping plan for a server. undecided is described at [plan.RoleBinding].
func toPlanBindings(objects []declaredObject, server string, undecided map[string]bool) []plan.RoleBinding {
	var all []plan.RoleBinding
	for _, o := range objects {
		b, ok := o.value.(*opensearchv1.OpensearchUserRoleBinding)
		if !ok {
			continue
		}
		var recorded map[string]plan.MappingEntries
		if o.mayBeAboutServer(server) {
			recorded = recordedEntries(b.Status)
		}
		all = append(all, plan.RoleBinding{
			UID: string(b.UID), Leaving: o.isDeleting(), Obstacle: cmp.Or(o.obstacleVerdict(nil), misreadNameObstacle(o, b.Spec.Roles...)),
			Roles: b.Spec.Roles, Record: recorded, InStep: o.isSynced(server),
			Undecided: undecided, Approval: plan.ApprovalDigest(b), Approved: b.Annotations[opensearchv1.BindAnnotation] == plan.ApprovalDigest(b),
			Entries: plan.MappingEntries{Users: b.Spec.Users, BackendRoles: b.Spec.BackendRoles, Hosts: b.Spec.Hosts, And: b.Spec.AndBackendRoles},
		})
	}
	return all
}

// recordedEntries returns the entries that a status records, by role. The record of the public operator counts until the status
// has one of ours.
func recordedEntries(s opensearchv1.OpensearchUserRoleBindingStatus) map[string]plan.MappingEntries {
	all := map[string]plan.MappingEntries{}
	if len(s.Provisioned) == 0 && s.ObservedGeneration == 0 {
		for _, role := range s.ProvisionedRoles {
			all[role] = plan.MappingEntries{Users: s.ProvisionedUsers, BackendRoles: s.ProvisionedBackendRoles}
		}
	}
	for _, p := range s.Provisioned {
		all[p.Role] = plan.MappingEntries{Users: p.Users, BackendRoles: p.BackendRoles, Hosts: p.Hosts, And: p.AndBackendRoles}
	}
	return all
}
