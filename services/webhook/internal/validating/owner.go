package validating

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/admission"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/iam"
)

// newAddedOwnersValidator checks new owners of an existing object. Rights on an owner are rights on the object from
// then on. A new object had no rights before, so its owners need no check. The refusal names escalate as the exemption.
func newAddedOwnersValidator[T any](g *Validator, target func(*T) iam.BindingTarget, escalate string) admission.ValidateFunc {
	return func(ctx context.Context, request *admissionv1.AdmissionRequest) error {
		object, was, err := decodeObjects[T](request)
		if err != nil || was == nil {
			return err
		}
		is := target(object)
		owners := addedElements(is.Owners, target(was).Owners)
		if len(owners) == 0 {
			return nil
		}
		x, who, err := g.indexAndSubject(ctx, request)
		if err != nil {
			return err
		}
		for _, typ := range typesOfKind(request.Kind) {
			at := authz.Scope{Type: typ, Ref: authz.Ref{Namespace: is.Namespace, Name: request.Name}}
			if m, lacks := x.MissingToSetOwners(who, at, is.UID, owners); lacks {
				return missingRightError(request, "users with rights on the new owner get", m, escalate)
			}
		}
		return nil
	}
}

// typesOfKind returns the types of the objects of a kind. The API server stores Events once and serves them in two groups,
// so a change of one changes the other.
func typesOfKind(of metav1.GroupVersionKind) []string {
	if of.Kind == "Event" && (of.Group == corev1.GroupName || of.Group == eventsv1.GroupName) {
		return []string{iam.OpenFGAType(corev1.GroupName, of.Kind), iam.OpenFGAType(eventsv1.GroupName, of.Kind)}
	}
	return []string{iam.OpenFGAType(of.Group, of.Kind)}
}

func projectTarget(p *resourcemanagerv1alpha1.Project) iam.BindingTarget {
	t, _ := iam.TargetOfProject(p)
	return t
}

func objectTarget(o *metav1.PartialObjectMetadata) iam.BindingTarget {
	t, _ := iam.TargetOfObject(&o.ObjectMeta)
	return t
}
