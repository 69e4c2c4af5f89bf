package guard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/entail-dev/entail/services/implied-role/infer"
)

const (
	// maxRoles is how many roles are looked at one by one, atATime how many at a time.
	maxRoles = 64
	atATime  = 8
)

// rights finds out what somebody may do. It asks the API server, every time.
type rights struct{ kube kubernetes.Interface }

// almighty tells whether a user may bind everything in a namespace: a member of system:masters may, whoever
// is asked.
func (r *rights) almighty(ctx context.Context, who user, namespace string) (bool, error) {
	if slices.Contains(who.Groups, "system:masters") {
		return true, nil
	}
	for _, all := range everything() {
		one, err := r.mayBind(ctx, who, namespace, all)
		if err != nil || !one {
			return false, err
		}
	}
	return true, nil
}

// everything is all roles of each kind: one without a name stands for them.
func everything() []infer.Role { return []infer.Role{{}, {Cluster: true}} }

// lacking lists the roles among those given that a user may not bind in a namespace. Of more than
// [maxRoles] it says only that of none it is known that they may.
func (r *rights) lacking(ctx context.Context, who user, namespace string, roles []infer.Role) ([]infer.Role, error) {
	for _, all := range everything() {
		ofKind := func(role infer.Role) bool { return role.Cluster == all.Cluster }
		if !slices.ContainsFunc(roles, ofKind) {
			continue
		}
		may, err := r.mayBind(ctx, who, namespace, all)
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
	roles, err := without(roles, func(role infer.Role) (bool, error) { return r.mayBind(ctx, who, namespace, role) })
	if err != nil || len(roles) == 0 {
		return nil, err
	}
	held, err := r.heldBy(ctx, who, namespace)
	if err != nil {
		return nil, err
	}
	return without(roles, func(role infer.Role) (bool, error) {
		permits, err := r.permits(ctx, namespace, role)
		if apierrors.IsNotFound(err) {
			return false, nil // Nobody holds what may yet come to be.
		}
		covered, _ := validation.Covers(held, permits)
		return covered, err
	})
}

// without leaves out the roles of which may says yes.
func without(roles []infer.Role, may func(infer.Role) (bool, error)) ([]infer.Role, error) {
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

// mayBind asks whether a user has the verb bind on a role; one without a name stands for all.
func (r *rights) mayBind(ctx context.Context, who user, namespace string, role infer.Role) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: who.Username, UID: who.UID, Groups: who.Groups, Extra: make(map[string]authorizationv1.ExtraValue, len(who.Extra)),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "bind", Group: rbacv1.GroupName, Resource: resource(role), Namespace: namespace, Name: role.Name,
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

// permits is what a role permits.
func (r *rights) permits(ctx context.Context, namespace string, role infer.Role) ([]rbacv1.PolicyRule, error) {
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

// heldBy is what all roles permit that are bound to a user in a namespace or everywhere.
func (r *rights) heldBy(ctx context.Context, who user, namespace string) ([]rbacv1.PolicyRule, error) {
	roles := map[infer.Role]struct{}{}
	note := func(ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		if slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return isSubject(who, s, namespace) }) {
			roles[infer.Role{Name: ref.Name, Cluster: ref.Kind == infer.KindClusterRole}] = struct{}{}
		}
	}
	everywhere := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.kube.RbacV1().ClusterRoleBindings().List(ctx, options)
	})
	here := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.kube.RbacV1().RoleBindings(namespace).List(ctx, options)
	})
	for _, bindings := range []*pager.ListPager{everywhere, here} {
		err := bindings.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
			switch b := object.(type) {
			case *rbacv1.ClusterRoleBinding:
				note(b.RoleRef, b.Subjects)
			case *rbacv1.RoleBinding:
				note(b.RoleRef, b.Subjects)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading what is bound to %s: %w", who.Username, err)
		}
	}
	var held []rbacv1.PolicyRule
	for role := range roles {
		permits, err := r.permits(ctx, namespace, role)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		held = append(held, permits...)
	}
	return held, nil
}

// isSubject tells whether a subject of a binding is a user, as Kubernetes does. A ServiceAccount
// without a namespace is one of the binding's.
func isSubject(who user, s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name == who.Username
	case rbacv1.GroupKind:
		return slices.Contains(who.Groups, s.Name)
	case rbacv1.ServiceAccountKind:
		return who.Username == "system:serviceaccount:"+cmp.Or(s.Namespace, namespace)+":"+s.Name
	}
	return false
}
