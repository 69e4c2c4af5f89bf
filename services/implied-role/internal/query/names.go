package query

import (
	"context"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/nearest"
	"github.com/entail-dev/entail/services/internal/rpc"
)

// clusterRolePrefix precedes the name of a ClusterRole on the command line.
const clusterRolePrefix = "clusterrole/"

// checkNamespace returns an error for the caller if a namespace does not exist. The watcher publishes no namespaces. So
// it reads the namespace at the API server, unless the informer has an object in it.
func (s *Server) checkNamespace(ctx context.Context, namespace string) error {
	if namespace == "" || s.cfg.State.HasObjectsIn(namespace) {
		return nil
	}
	exists, err := s.cfg.NamespaceExists(ctx, namespace)
	if err != nil || exists {
		return err
	}
	var known []string
	if canList(ctx, event.GroupResource{Resource: "namespaces"}, "") {
		known = s.cfg.State.Namespaces()
	}
	return rpc.NotFoundError("namespace %q not found%s", namespace, nearest.Hint(namespace, "namespaces with RoleBindings", known))
}

// canList reports whether the caller may list a kind, and so see the names of its objects.
func canList(ctx context.Context, r event.GroupResource, namespace string) bool {
	return rpc.CheckRight(ctx, rpc.RequiredRight{Verb: "list", GroupResource: r, Namespace: namespace}) == nil
}

// checkRole returns an error for the caller if nothing has or names a role. It reports whether the role is missing although
// rules or bindings name it.
func (s *Server) checkRole(ctx context.Context, namespace string, role infer.Role) (missing bool, err error) {
	if s.cfg.State.RoleExistsFunc(namespace)(role) {
		return false, nil
	}
	if s.isRoleNamed(namespace, role) {
		return true, nil
	}
	return true, s.roleNotFoundError(ctx, namespace, role)
}

// isRoleNamed reports whether a rule or a binding names a role.
func (s *Server) isRoleNamed(namespace string, role infer.Role) bool {
	for _, rule := range s.cfg.State.RuleSet(namespace).Rules() {
		if rule.Parent == role || rule.Child == role {
			return true
		}
	}
	return len(s.cfg.State.ExplicitBindingsTo(namespace, role))+len(s.cfg.State.GeneratedBindingsTo(namespace, role))+
		len(s.cfg.State.ClusterRoleBindingsTo(role)) > 0
}

// roleNotFoundError returns the error about a role that does not exist. It suggests the names that the caller may list.
func (s *Server) roleNotFoundError(ctx context.Context, namespace string, role infer.Role) error {
	var roles, clusterRoles []string
	if canList(ctx, kinds.Roles().GroupResource, namespace) {
		roles = s.cfg.State.RoleNames(namespace)
	}
	if canList(ctx, kinds.ClusterRoles().GroupResource, "") {
		clusterRoles = s.cfg.State.ClusterRoleNames()
	}
	if role.Cluster {
		return rpc.NotFoundError("ClusterRole %q not found%s", role.Name, roleHint(role, roles, clusterRoles))
	}
	return rpc.NotFoundError("Role %q not found in namespace %q%s", role.Name, namespace, roleHint(role, roles, clusterRoles))
}

// roleHint suggests roles for a name that does not exist, as they are written on the command line.
func roleHint(role infer.Role, roles, clusterRoles []string) string {
	written := map[string][]string{}
	for _, name := range roles {
		written[name] = append(written[name], name)
	}
	for _, name := range clusterRoles {
		written[name] = append(written[name], clusterRolePrefix+name)
	}
	names := make([]string, 0, len(written))
	for name := range written {
		names = append(names, name)
	}
	var near []string
	for _, name := range nearest.Names(role.Name, names) {
		near = append(near, written[name]...)
	}
	switch {
	case len(near) > 0:
		return nearest.Suggest(near)
	case role.Cluster:
		return nearest.Hint(role.Name, "ClusterRoles", clusterRoles)
	}
	return nearest.Hint(role.Name, "Roles of this namespace", roles)
}

// bindingNotFoundError returns the error about a RoleBinding that does not exist. The caller may list the RoleBindings.
func (s *Server) bindingNotFoundError(namespace, name string) error {
	var known []string
	for _, b := range s.cfg.State.BindingsIn(namespace) {
		known = append(known, b.Name)
	}
	return rpc.NotFoundError("there is no RoleBinding %q in namespace %q%s", name, namespace, nearest.Hint(name, "RoleBindings", known))
}

// isSubjectUnnamed reports whether no binding of the cluster names a subject itself. Kubernetes stores no users and groups, so
// only bindings name them.
func (s *Server) isSubjectUnnamed(subject rbacv1.Subject) bool {
	who := infer.NewSubjectIdentity(subject)
	return !s.cfg.State.HasSubject(func(b *infer.Binding) bool {
		_, ok := who.MatchingSubject(b)
		return ok
	})
}

// checkSubject returns an error for the caller if no binding names a subject or one of its groups. A question that has a
// positive answer needs no such check.
func (s *Server) checkSubject(ctx context.Context, namespace string, subject rbacv1.Subject, groups []string) error {
	if !s.isSubjectUnnamed(subject) {
		return nil
	}
	for _, group := range groups {
		if !s.isSubjectUnnamed(rbacv1.Subject{Kind: rbacv1.GroupKind, Name: group}) {
			return nil
		}
	}
	bindings := s.cfg.State.BindingsIn(namespace)
	if canList(ctx, kinds.ClusterRoleBindings().GroupResource, "") {
		bindings = append(bindings, s.cfg.State.ClusterRoleBindings()...)
	}
	var known []string
	for _, b := range bindings {
		for _, other := range b.Subjects {
			if other.Kind == subject.Kind {
				known = append(known, other.Name)
			}
		}
	}
	hint := nearest.Suggest(nearest.Names(subject.Name, known))
	return rpc.NotFoundError("no RoleBinding and no ClusterRoleBinding names %s %q%s Kubernetes stores no users and groups, so only bindings name them",
		strings.ToLower(subject.Kind), subject.Name, withStop(hint))
}

// withStop ends a clause, so that a sentence can follow.
func withStop(clause string) string {
	if strings.HasSuffix(clause, "?") {
		return clause
	}
	return clause + "."
}

// countConsidered counts the objects of a namespace from which an answer follows.
func (s *Server) countConsidered(namespace string) *inferencev1.Considered {
	return &inferencev1.Considered{
		RoleBindings:        int64(s.cfg.State.CountBindings(namespace)),
		ClusterRoleBindings: int64(s.cfg.State.CountClusterRoleBindings()),
		Rules:               int64(s.cfg.State.CountRules(namespace)),
	}
}
