package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/iam"
)

// permissionFormat matches a permission: group/resource.verb.
var permissionFormat = regexp.MustCompile(`^[^/]+/[^.]+\.[^.]+$`)

// maxEffective bounds the permissions that a status lists, in bytes. A larger object may exceed the limits of the API
// server.
const maxEffective = 256 << 10

// limitPermissions returns the first permissions, as many as maxEffective allows.
func limitPermissions(permissions []string) []string {
	size := 0
	for i, permission := range permissions {
		if size += len(permission); size > maxEffective {
			return permissions[:i]
		}
	}
	return permissions
}

// RoleConditions returns the conditions of a Role, and its effective permissions up to maxEffective.
func RoleConditions(o *iam.DeclaredObjects, r *iamv1alpha1.Role) (effective []string, conditions []condition.Condition) {
	gives := o.EffectivePermissions(r)
	valid := condition.New(iamv1alpha1.PermissionsValid, true, iamv1alpha1.ValidationSuccessful, "every permission is one that some ProtectedResource has")
	ready := condition.New(iamv1alpha1.Ready, true, iamv1alpha1.ReconciliationSuccessful, "subjects that are bound to it have its permissions")
	if len(gives.Unknown) > 0 {
		var unknown []string
		for _, permission := range gives.Unknown {
			if !permissionFormat.MatchString(permission) {
				permission += " (invalid format)"
			}
			unknown = append(unknown, permission)
		}
		valid = condition.New(valid.Type, false, iamv1alpha1.InvalidPermissions,
			"Role contains invalid/undefined permissions: "+strings.Join(unknown, ", "))
		ready = condition.New(ready.Type, false, iamv1alpha1.InvalidPermissions, valid.Message+"; the others are given")
	}
	if len(gives.Missing) > 0 {
		var missing []string
		for _, name := range gives.Missing {
			namespace, name, _ := strings.Cut(name, "/")
			missing = append(missing, fmt.Sprintf("inherited role '%s' not found in namespace '%s'", name, namespace))
		}
		ready = condition.New(ready.Type, false, iamv1alpha1.EffectivePermissionsError, strings.Join(missing, "; "))
	}
	if effective = limitPermissions(gives.All); len(effective) < len(gives.All) {
		ready.Message += fmt.Sprintf("; of %d permissions only the first %d are listed", len(gives.All), len(effective))
	}
	return effective, []condition.Condition{valid, ready}
}

// PolicyBindingConditions returns the conditions of a PolicyBinding. The first failed one gives the reason of Ready.
func PolicyBindingConditions(o *iam.DeclaredObjects, b *iamv1alpha1.PolicyBinding) []condition.Condition {
	target := condition.New(iamv1alpha1.TargetValid, true, iamv1alpha1.ValidationSuccessful, "the target exists")
	if reason := o.InvalidTargetReason(b); reason != "" {
		target = condition.New(target.Type, false, reason, targetMessage(b.Spec.ResourceSelector, reason))
	}
	subjects := condition.New(iamv1alpha1.SubjectValid, true, iamv1alpha1.ValidationSuccessful, "every subject exists, or needs no object")
	var invalid, inactive, remedies []string
	acting := false
	for _, s := range b.Spec.Subjects {
		is, reason := o.ResolveSubject(s)
		switch {
		case reason != "":
			invalid = append(invalid, fmt.Sprintf("%s/%s (%s)", s.Kind, s.Name, reason))
			if remedy := subjectRemedy(reason); !slices.Contains(remedies, remedy) {
				remedies = append(remedies, remedy)
			}
		case is == "":
			inactive = append(inactive, s.Kind+"/"+s.Name)
		default:
			acting = true
		}
	}
	if len(invalid) > 0 {
		subjects = condition.New(subjects.Type, false, iamv1alpha1.ValidationFailed, strings.Join(append(invalid, remedies...), "; "))
	}
	role := condition.New(iamv1alpha1.RoleValid, true, iamv1alpha1.ValidationSuccessful, "the role exists")
	if o.RoleOfBinding(b) == nil {
		role = condition.New(role.Type, false, iamv1alpha1.RoleNotFoundForBinding,
			fmt.Sprintf("Role %q not found in namespace %q; create it, or make another binding with a correct roleRef",
				b.Spec.RoleRef.Name, cmp.Or(b.Spec.RoleRef.Namespace, b.Namespace)))
	}
	ready := condition.New(iamv1alpha1.Ready, true, iamv1alpha1.ReconciliationSuccessful, "the subjects have the role on the target")
	for _, why := range []struct {
		condition.Condition

		reason string
	}{
		{target, iamv1alpha1.ResourceSelectorValidationFailed},
		{subjects, iamv1alpha1.SubjectValidationFailed},
		{role, iamv1alpha1.RoleNotFoundForBinding},
	} {
		if !why.IsTrue() {
			ready = condition.New(ready.Type, false, why.reason, why.Message)
			break
		}
	}
	switch {
	case ready.IsTrue() && !acting:
		ready.Message = "all subjects are Inactive, so nobody has the role by this binding"
	case ready.IsTrue() && len(inactive) > 0:
		ready.Message += ", but for those that are Inactive: " + strings.Join(inactive, ", ")
	}
	if !subjects.IsTrue() && target.IsTrue() && role.IsTrue() && acting {
		ready.Message += "; the others have the role"
	}
	return []condition.Condition{target, subjects, role, ready}
}

// subjectRemedy returns what to do about a subject that is not valid.
func subjectRemedy(reason string) string {
	switch reason {
	case iamv1alpha1.NotFound:
		return "create the objects that are NotFound, or correct their names"
	case iamv1alpha1.UIDMismatch:
		return "UIDMismatch: another object has this name now; to bind that one, set the uid that kubectl get KIND NAME -o jsonpath={.metadata.uid} prints"
	case iamv1alpha1.NamespaceMissing:
		return "NamespaceMissing: set the namespace of the Group; only a group of the authenticator, with a ':' in its name, has none"
	}
	return "correct the fields of subjects with " + reason
}

// targetMessage says why a target is not valid, and what to do.
func targetMessage(on iamv1alpha1.ResourceSelector, reason string) string {
	group, kind, object := "", "", ""
	if r := on.ResourceRef; r != nil {
		group, kind, object = r.APIGroup, r.Kind, fmt.Sprintf("%s %q", r.Kind, r.Name)
	} else if k := on.ResourceKind; k != nil {
		group, kind = k.APIGroup, k.Kind
	}
	switch reason {
	case iamv1alpha1.TargetNotFound:
		return object + " with this uid not found; for an object that is created later, make another binding"
	case iamv1alpha1.TargetKindNotRecognized:
		return "objects of kind " + kind + " are not followed; the condition Observed of its ProtectedResource says why"
	case iamv1alpha1.TargetNamespaceMissing:
		return "objects of kind " + kind + " are in namespaces, and the binding names none; make another binding with the namespace"
	case iamv1alpha1.TargetUIDMismatch:
		return object + " has another uid; make another binding if this object is meant"
	}
	return fmt.Sprintf("no ProtectedResource in force registers kind %s of API group %q; entail iam kinds lists the kinds", kind, group)
}

// GroupMembershipConditions returns the conditions of a GroupMembership.
func GroupMembershipConditions(o *iam.DeclaredObjects, m *iamv1alpha1.GroupMembership) []condition.Condition {
	user := condition.New(iamv1alpha1.UserRefValid, true, iamv1alpha1.ValidationSuccessful, "the user exists")
	is, reason := o.ResolveMember(m)
	if reason != "" {
		message := "Reference not found: there is no User " + m.Spec.UserRef.Name
		switch reason {
		case iamv1alpha1.UIDMissing:
			message = "the UID of the User is not recorded yet"
		case iamv1alpha1.UIDMismatch:
			message = "the User was deleted and created again; delete this GroupMembership, and create it again if that User is meant"
		}
		user = condition.New(user.Type, false, iamv1alpha1.ValidationFailed, message)
	}
	group := condition.New(iamv1alpha1.GroupRefValid, true, iamv1alpha1.ValidationSuccessful, "the group exists")
	if g := o.Group(m.Spec.GroupRef.Namespace, m.Spec.GroupRef.Name); g == nil || g.DeletionTimestamp != nil {
		group = condition.New(group.Type, false, iamv1alpha1.ValidationFailed,
			"Reference not found: there is no Group "+m.Spec.GroupRef.Namespace+"/"+m.Spec.GroupRef.Name)
	}
	ready := condition.New(iamv1alpha1.Ready, true, iamv1alpha1.Reconciled, "the user is a member of the group")
	if is == "" {
		ready.Message = "the user is Inactive and gets nothing by this membership"
	}
	for _, ref := range []condition.Condition{user, group} {
		if !ref.IsTrue() && ready.IsTrue() {
			ready = condition.New(ready.Type, false, iamv1alpha1.ReferenceInvalid, ref.Message)
		}
	}
	return []condition.Condition{user, group, ready}
}

// UserCondition returns the condition Ready of a User.
func UserCondition(u *iamv1alpha1.User) condition.Condition {
	return subjectCondition(u.Status.State, "the user")
}

// ServiceAccountCondition returns the condition Ready of a ServiceAccount.
func ServiceAccountCondition(a *iamv1alpha1.ServiceAccount) condition.Condition {
	return subjectCondition(a.Spec.State, "the account")
}

func subjectCondition(state iamv1alpha1.ActivationState, what string) condition.Condition {
	if state == iamv1alpha1.Inactive {
		return condition.New(iamv1alpha1.Ready, true, iamv1alpha1.Reconciled, what+" is Inactive, and has nothing")
	}
	return condition.New(iamv1alpha1.Ready, true, iamv1alpha1.Reconciled, what+" may be given roles")
}

// GroupCondition returns the condition Ready of a Group.
func GroupCondition(*iamv1alpha1.Group) condition.Condition {
	return condition.New(iamv1alpha1.Ready, true, iamv1alpha1.Reconciled, "the group has the members that its GroupMemberships declare")
}

// OrganizationCondition returns the condition Ready of an Organization.
func OrganizationCondition(*resourcemanagerv1alpha1.Organization) condition.Condition {
	return condition.New(iamv1alpha1.Ready, true, iamv1alpha1.Reconciled, "roles may be given on it, and projects may belong to it")
}

// ProjectCondition returns the condition Ready of a Project.
func ProjectCondition(o *iam.DeclaredObjects, p *resourcemanagerv1alpha1.Project) condition.Condition {
	target, _ := iam.TargetOfProject(p)
	owner, name := target.Owners[len(target.Owners)-1], p.Spec.OwnerRef.Name
	is, there := o.Target(iam.OpenFGAObject(owner.Type, "", name))
	switch {
	case !there:
		return condition.New(iamv1alpha1.Ready, false, iamv1alpha1.ReferenceInvalid, "Reference not found: there is no Organization "+name)
	case owner.UID == "":
		return condition.New(iamv1alpha1.Ready, false, iamv1alpha1.ReferenceInvalid,
			"the UID of the Organization is not recorded yet, or differs from that in an owner reference")
	case owner.UID != is.UID:
		return condition.New(iamv1alpha1.Ready, false, iamv1alpha1.ReferenceInvalid,
			"the Organization was deleted and created again; remove status.organization to move the project to it")
	}
	return condition.New(iamv1alpha1.Ready, true, iamv1alpha1.Reconciled, "it belongs to Organization "+name)
}

// IsOurReason reports whether a reason of Ready comes from this package, or is the default of a new object.
func IsOurReason(reason string) bool {
	switch reason {
	case "Unknown", iamv1alpha1.Reconciled, iamv1alpha1.ReferenceInvalid, iamv1alpha1.NotAdopted, iamv1alpha1.NoIAMStore, corev1alpha1.BackendUnavailable:
		return true
	}
	return false
}

// ObservedCondition returns the condition Observed of a ProtectedResource. The problem is why the watcher does not follow its
// kind.
func ObservedCondition(followed, trusted bool, problem string) condition.Condition {
	problem = cmp.Or(problem, "objects of this kind are not followed yet")
	switch {
	case followed:
		return condition.New(iamv1alpha1.Observed, true, iamv1alpha1.Followed, "bindings on single objects are checked against these")
	case trusted:
		return condition.New(iamv1alpha1.Observed, false, iamv1alpha1.Trusted,
			problem+"; bindings on single objects take effect whether or not the objects exist (--unobserved-targets=trust)")
	}
	return condition.New(iamv1alpha1.Observed, false, iamv1alpha1.NotFollowed,
		problem+"; bindings on single objects grant nothing, bindings on the kind or a parent take effect")
}

// RoleConditionTypes lists the conditions of a Role in order.
func RoleConditionTypes() []string { return []string{iamv1alpha1.PermissionsValid, iamv1alpha1.Ready} }

// PolicyBindingConditionTypes lists the conditions of a PolicyBinding in order.
func PolicyBindingConditionTypes() []string {
	return []string{iamv1alpha1.TargetValid, iamv1alpha1.SubjectValid, iamv1alpha1.RoleValid, iamv1alpha1.Ready}
}

// GroupMembershipConditionTypes lists the conditions of a GroupMembership in order.
func GroupMembershipConditionTypes() []string {
	return []string{iamv1alpha1.UserRefValid, iamv1alpha1.GroupRefValid, iamv1alpha1.Ready}
}
