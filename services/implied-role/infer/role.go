package infer

import (
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
)

// Kinds of roles.
const (
	KindRole        = "Role"
	KindClusterRole = "ClusterRole"
)

const (
	clusterPrefix = KindClusterRole + "/"
	maxRoleName   = 253
)

// Role identifies a Role of the namespace, or a ClusterRole. The object need not exist.
type Role struct {
	Name string
	// Cluster is true for a ClusterRole.
	Cluster bool
}

var (
	errNoName = errors.New("a role has no name")
	errKind   = errors.New("the kind of a role is Role or ClusterRole")
	errLength = fmt.Errorf("the name of a role has at most %d characters", maxRoleName)
)

// ParseRole returns the role of a kind and a name, or an error if one is invalid. An empty kind means Role.
func ParseRole(kind, name string) (Role, error) {
	r := Role{Name: name, Cluster: kind == KindClusterRole}
	switch {
	case name == "":
		return r, errNoName
	case len(name) > maxRoleName:
		return r, errLength
	case kind != "" && kind != KindRole && kind != KindClusterRole:
		return r, fmt.Errorf("%w, not %.50q", errKind, kind)
	}
	if wrong := content.IsPathSegmentName(name); len(wrong) > 0 {
		return r, fmt.Errorf("role %q: its name %s", name, strings.Join(wrong, ", "))
	}
	return r, nil
}

// String returns the name of a Role, or "ClusterRole/name". Names contain no slash, so the result is unique.
func (r Role) String() string {
	if r.Cluster {
		return clusterPrefix + r.Name
	}
	return r.Name
}

// Kind returns "Role" or "ClusterRole".
func (r Role) Kind() string {
	if r.Cluster {
		return KindClusterRole
	}
	return KindRole
}

// Compare orders roles by name. A Role comes before the ClusterRole of the same name.
func (r Role) Compare(other Role) int {
	if order := strings.Compare(r.Name, other.Name); order != 0 || r.Cluster == other.Cluster {
		return order
	}
	if r.Cluster {
		return 1
	}
	return -1
}

func (r Role) toRoleRef() rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: r.Kind(), Name: r.Name}
}
