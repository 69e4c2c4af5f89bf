package kinds

import (
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
)

// IAM lists every kind that says who may do what to what.
func IAM() []Kind {
	return []Kind{
		ProtectedResources(), IAMRoles(), PolicyBindings(), Groups(), GroupMemberships(), Users(), IAMServiceAccounts(),
		Organizations(), Projects(),
	}
}

// ProtectedResources is the kind ProtectedResource.
func ProtectedResources() Kind { return iam(iamv1alpha1.ProtectedResources, "ProtectedResource", true) }

// IAMRoles is the kind Role of IAM, which is not that of RBAC.
func IAMRoles() Kind { return iam(iamv1alpha1.Roles, "Role", false) }

// PolicyBindings is the kind PolicyBinding.
func PolicyBindings() Kind { return iam(iamv1alpha1.PolicyBindings, "PolicyBinding", false) }

// Groups is the kind Group.
func Groups() Kind { return iam(iamv1alpha1.Groups, "Group", false) }

// GroupMemberships is the kind GroupMembership.
func GroupMemberships() Kind { return iam(iamv1alpha1.GroupMemberships, "GroupMembership", false) }

// Users is the kind User.
func Users() Kind { return iam(iamv1alpha1.Users, iamv1alpha1.UserKind, true) }

// IAMServiceAccounts is the kind ServiceAccount of IAM, which is not that of the core API.
func IAMServiceAccounts() Kind {
	return iam(iamv1alpha1.ServiceAccounts, iamv1alpha1.ServiceAccountKind, true)
}

// Organizations is the kind Organization.
func Organizations() Kind {
	return resourcemanager(resourcemanagerv1alpha1.Organizations, resourcemanagerv1alpha1.OrganizationKind)
}

// Projects is the kind Project.
func Projects() Kind {
	kind := resourcemanager(resourcemanagerv1alpha1.Projects, resourcemanagerv1alpha1.ProjectKind)
	kind.Status = true // It records whose the project is.
	return kind
}

func iam(resource, kind string, global bool) Kind {
	gv := iamv1alpha1.GroupVersion
	return Kind{
		GroupResource: event.GroupResource{Group: gv.Group, Resource: resource},
		Version:       gv.Version, Kind: kind, Status: true, Global: global,
	}
}

func resourcemanager(resource, kind string) Kind {
	gv := resourcemanagerv1alpha1.GroupVersion
	return Kind{
		GroupResource: event.GroupResource{Group: gv.Group, Resource: resource}, Version: gv.Version, Kind: kind, Global: true,
	}
}
