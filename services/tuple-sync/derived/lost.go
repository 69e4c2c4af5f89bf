package derived

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// LostReference is a name in a binding whose object is gone for good: no object will have its uid again.
type LostReference struct {
	// Binding is the PolicyBinding or GroupMembership.
	Binding event.Key
	Kind    string
	// Field is the path of the reference. Object is its object, as KIND/NAME or KIND/NAMESPACE/NAME.
	Field, Object, UID string
	// Reason is NotFound, or UIDMismatch if another object has the name now.
	Reason string
}

// LostReferences lists the lost references, in any order. unchecked lists the kinds whose objects are unknown here.
func (s *State) LostReferences() (lost []LostReference, unchecked []string) {
	objects := s.newLookup(func(string) bool { return true })
	skipped := map[string]bool{}
	for _, o := range s.bindings.rows.All() {
		if o.Key.Cluster == s.store.Cluster && o.Value.DeletionTimestamp == nil {
			lost = append(lost, lostInBinding(objects, o.Key, o.Value, skipped)...)
		}
	}
	for _, o := range s.memberships.rows.All() {
		first := o.Value.Status.User
		if o.Key.Cluster != s.store.Cluster || o.Value.DeletionTimestamp != nil || first == nil {
			continue
		}
		if _, reason := objects.ResolveMember(o.Value); isGoneForGood(reason) {
			lost = append(lost, LostReference{
				Binding: o.Key, Kind: kinds.GroupMemberships().Kind, Field: "spec.userRef",
				Object: referenceName(iamv1alpha1.UserKind, "", o.Value.Spec.UserRef.Name), UID: first.UID, Reason: reason,
			})
		}
	}
	return lost, slices.Sorted(maps.Keys(skipped))
}

// lostInBinding lists the lost references of a PolicyBinding. It adds the kinds that it cannot check to skipped.
func lostInBinding(objects *iam.DeclaredObjects, key event.Key, b *iamv1alpha1.PolicyBinding, skipped map[string]bool) (lost []LostReference) {
	add := func(field, object, uid, reason string) {
		lost = append(lost, LostReference{Binding: key, Kind: kinds.PolicyBindings().Kind, Field: field, Object: object, UID: uid, Reason: reason})
	}
	for i, subject := range b.Spec.Subjects {
		if subject.Kind == iamv1alpha1.ServiceAccountKind && subject.Namespace != "" {
			skipped["ServiceAccounts of the core API"] = true
			continue
		}
		if _, reason := objects.ResolveSubject(subject); subject.UID != "" && isGoneForGood(reason) {
			add(fmt.Sprintf("spec.subjects[%d]", i), referenceName(subject.Kind, subject.Namespace, subject.Name), subject.UID, reason)
		}
	}
	target := b.Spec.ResourceSelector.ResourceRef
	if target == nil {
		return lost
	}
	object := referenceName(target.Kind, target.Namespace, target.Name)
	switch objects.InvalidTargetReason(b) {
	case iamv1alpha1.TargetNotFound:
		add("spec.resourceSelector.resourceRef", object, target.UID, iamv1alpha1.NotFound)
	case iamv1alpha1.TargetUIDMismatch:
		add("spec.resourceSelector.resourceRef", object, target.UID, iamv1alpha1.UIDMismatch)
	case iamv1alpha1.TargetKindNotRecognized, iamv1alpha1.ValidationFailed:
		skipped["objects of kind "+target.Kind+" of API group "+target.APIGroup] = true
	}
	return lost
}

// isGoneForGood reports whether the reason means that no object has the uid. The API server never uses a uid twice.
func isGoneForGood(reason string) bool {
	return reason == iamv1alpha1.NotFound || reason == iamv1alpha1.UIDMismatch
}

func referenceName(kind, namespace, name string) string {
	parts := []string{kind, namespace, name}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "/")
}
