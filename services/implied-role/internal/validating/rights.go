package validating

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/entail-dev/entail/services/implied-role/infer"
)

const (
	// maxRoles bounds the roles that are checked one by one, atATime the checks in parallel.
	maxRoles = 64
	atATime  = 8
)

// rightsReader finds the permissions of users. It caches nothing: each call reads from the API server.
type rightsReader struct {
	kube  kubernetes.Interface
	reads singleflight.Group
}

// canBindAll reports whether a user may bind every role in a namespace. Members of system:masters always may.
func (r *rightsReader) canBindAll(ctx context.Context, who requestAuthor, namespace string) (bool, error) {
	if slices.Contains(who.Groups, "system:masters") {
		return true, nil
	}
	for _, all := range wildcardRoles() {
		one, err := r.canBindRole(ctx, who, namespace, all)
		if err != nil || !one {
			return false, err
		}
	}
	return true, nil
}

// wildcardRoles returns one role without a name per kind. It stands for all roles of that kind.
func wildcardRoles() []infer.Role { return []infer.Role{{}, {Cluster: true}} }

// unbindableRoles returns the given roles that a user may not bind in a namespace. If more than [maxRoles] are left after the
// check for all roles of a kind, it returns them unchecked.
func (r *rightsReader) unbindableRoles(ctx context.Context, who requestAuthor, namespace string, roles []infer.Role) ([]infer.Role, error) {
	for _, all := range wildcardRoles() {
		ofKind := func(role infer.Role) bool { return role.Cluster == all.Cluster }
		if !slices.ContainsFunc(roles, ofKind) {
			continue
		}
		may, err := r.canBindRole(ctx, who, namespace, all)
		if err != nil {
			return nil, err
		}
		if may {
			roles = slices.DeleteFunc(slices.Clone(roles), ofKind)
		}
	}
	if len(roles) > maxRoles {
		return roles, nil
	}
	roles, err := rolesNotAllowed(roles, func(role infer.Role) (bool, error) { return r.canBindRole(ctx, who, namespace, role) })
	if err != nil || len(roles) == 0 {
		return nil, err
	}
	held, err := r.policyRulesOfUser(ctx, who, namespace)
	if err != nil {
		return nil, err
	}
	return rolesNotAllowed(roles, func(role infer.Role) (bool, error) {
		permits, err := r.policyRulesOfRole(ctx, namespace, role)
		if apierrors.IsNotFound(err) {
			return false, nil // The role may be created later with any permissions.
		}
		covered, _ := validation.Covers(held, permits)
		return covered, err
	})
}

// rolesNotAllowed returns the roles for which may returns false.
func rolesNotAllowed(roles []infer.Role, may func(infer.Role) (bool, error)) ([]infer.Role, error) {
	group, drop := errgroup.Group{}, make([]atomic.Bool, len(roles))
	group.SetLimit(atATime)
	for i, role := range roles {
		group.Go(func() error {
			ok, err := may(role)
			drop[i].Store(ok && err == nil)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var left []infer.Role
	for i, role := range roles {
		if !drop[i].Load() {
			left = append(left, role)
		}
	}
	return left, nil
}

// canBindRole reports whether a user has the verb "bind" on a role. A role without a name stands for all of its kind.
func (r *rightsReader) canBindRole(ctx context.Context, who requestAuthor, namespace string, role infer.Role) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: who.Username, UID: who.UID, Groups: who.Groups, Extra: make(map[string]authorizationv1.ExtraValue, len(who.Extra)),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "bind", Group: rbacv1.GroupName, Resource: roleResource(role), Namespace: namespace, Name: role.Name,
		},
	}
	for key, value := range who.Extra {
		spec.Extra[key] = authorizationv1.ExtraValue(value)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: spec}
	answer, err := r.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking whether %s may bind: %w", who.Username, err)
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}

// policyRulesOfRole returns the rules of a role.
func (r *rightsReader) policyRulesOfRole(ctx context.Context, namespace string, role infer.Role) ([]rbacv1.PolicyRule, error) {
	if role.Cluster {
		found, err := r.kube.RbacV1().ClusterRoles().Get(ctx, role.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading ClusterRole %s: %w", role.Name, err)
		}
		return found.Rules, nil
	}
	found, err := r.kube.RbacV1().Roles(namespace).Get(ctx, role.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Role %s: %w", role.Name, err)
	}
	return found.Rules, nil
}
