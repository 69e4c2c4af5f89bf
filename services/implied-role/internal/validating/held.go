package validating

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/entail-dev/entail/services/implied-role/infer"
)

// maxReads bounds the roles that are read one by one. Beyond it, all roles of the namespace and the cluster are listed.
const maxReads = 50

// boundSubjects holds the subjects of a binding to a role. rolePermissions holds the rules of a role.
type (
	boundSubjects struct {
		role     infer.Role
		subjects []rbacv1.Subject
	}
	rolePermissions struct {
		role  infer.Role
		rules []rbacv1.PolicyRule
	}
)

// policyRulesOfUser returns the rules of all roles that are bound to a user in the namespace or in the cluster.
func (r *rightsReader) policyRulesOfUser(ctx context.Context, who requestAuthor, namespace string) ([]rbacv1.PolicyRule, error) {
	everywhere, err := listAndMap(ctx, r, "", func(b *rbacv1.ClusterRoleBinding) boundSubjects {
		return boundSubjects{roleOfRef(b.RoleRef), b.Subjects}
	})
	if err != nil {
		return nil, fmt.Errorf("reading the bindings of %s: %w", who.Username, err)
	}
	here, err := listAndMap(ctx, r, namespace, func(b *rbacv1.RoleBinding) boundSubjects { return boundSubjects{roleOfRef(b.RoleRef), b.Subjects} })
	if err != nil {
		return nil, fmt.Errorf("reading the bindings of %s: %w", who.Username, err)
	}
	roles := map[infer.Role]struct{}{}
	for _, bindings := range [][]boundSubjects{everywhere, here} {
		for _, b := range bindings {
			if slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool { return matchesSubject(who, s, namespace) }) {
				roles[b.role] = struct{}{}
			}
		}
	}
	return r.policyRulesOfRoles(ctx, namespace, roles)
}

// policyRulesOfRoles returns the rules of all given roles. A role that does not exist has none.
func (r *rightsReader) policyRulesOfRoles(ctx context.Context, namespace string, roles map[infer.Role]struct{}) (rules []rbacv1.PolicyRule, err error) {
	if len(roles) > maxReads {
		return r.listPolicyRules(ctx, namespace, roles)
	}
	var mu sync.Mutex
	group := errgroup.Group{}
	group.SetLimit(atATime)
	for role := range roles {
		group.Go(func() error {
			permits, err := r.policyRulesOfRole(ctx, namespace, role)
			if apierrors.IsNotFound(err) {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			rules = append(rules, permits...)
			return err
		})
	}
	err = group.Wait()
	return rules, err
}

func (r *rightsReader) listPolicyRules(ctx context.Context, namespace string, roles map[infer.Role]struct{}) (rules []rbacv1.PolicyRule, err error) {
	everywhere, err := listAndMap(ctx, r, "", func(c *rbacv1.ClusterRole) rolePermissions {
		return rolePermissions{infer.Role{Name: c.Name, Cluster: true}, c.Rules}
	})
	if err != nil {
		return nil, fmt.Errorf("reading ClusterRoles: %w", err)
	}
	here, err := listAndMap(ctx, r, namespace, func(c *rbacv1.Role) rolePermissions { return rolePermissions{infer.Role{Name: c.Name}, c.Rules} })
	if err != nil {
		return nil, fmt.Errorf("reading Roles: %w", err)
	}
	for _, permissions := range [][]rolePermissions{everywhere, here} {
		for _, p := range permissions {
			if _, ok := roles[p.role]; ok {
				rules = append(rules, p.rules...)
			}
		}
	}
	return rules, nil
}

func roleOfRef(ref rbacv1.RoleRef) infer.Role {
	return infer.Role{Name: ref.Name, Cluster: ref.Kind == infer.KindClusterRole}
}

// listAndMap lists all objects of a kind, in a namespace or cluster-wide, and maps each by keep.
func listAndMap[O, T any](ctx context.Context, r *rightsReader, namespace string, keep func(*O) T) ([]T, error) {
	return coalesceRead(ctx, &r.reads, fmt.Sprintf("%T in %s", new(O), namespace), func(ctx context.Context) (all []T, err error) {
		err = pager.New(r.newListPageFunc(new(O), namespace)).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
			if o, ok := any(object).(*O); ok {
				all = append(all, keep(o))
			}
			return nil
		})
		return all, err
	})
}

// newListPageFunc returns a function that lists one page of the kind of the given object.
func (r *rightsReader) newListPageFunc(kind any, namespace string) pager.ListPageFunc {
	return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		switch api := r.kube.RbacV1(); kind.(type) {
		case *rbacv1.ClusterRoleBinding:
			return api.ClusterRoleBindings().List(ctx, o)
		case *rbacv1.RoleBinding:
			return api.RoleBindings(namespace).List(ctx, o)
		case *rbacv1.ClusterRole:
			return api.ClusterRoles().List(ctx, o)
		default:
			return api.Roles(namespace).List(ctx, o)
		}
	}
}

// matchesSubject reports whether a subject of a binding matches a user, by the rules of Kubernetes. A ServiceAccount without
// a namespace gets that of the binding.
func matchesSubject(who requestAuthor, s rbacv1.Subject, namespace string) bool {
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
