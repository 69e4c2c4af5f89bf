package kinds

import (
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
)

// IAMKinds lists the kinds of IAM: roles, bindings, subjects, organizations and projects.
func IAMKinds() []Kind {
	return []Kind{
		ProtectedResources(), IAMRoles(), PolicyBindings(), IAMGroups(), GroupMemberships(), IAMUsers(), IAMServiceAccounts(),
		Organizations(), Projects(),
	}
}

// ProtectedResources returns the kind ProtectedResource.
func ProtectedResources() Kind {
	return iamKind(iamv1alpha1.ProtectedResources, "ProtectedResource", true)
}

// IAMRoles returns the kind Role of IAM, which is not the Role of RBAC.
func IAMRoles() Kind { return iamKind(iamv1alpha1.Roles, "Role", false) }

// PolicyBindings returns the kind PolicyBinding.
func PolicyBindings() Kind { return iamKind(iamv1alpha1.PolicyBindings, "PolicyBinding", false) }

// IAMGroups returns the kind Group.
func IAMGroups() Kind { return iamKind(iamv1alpha1.Groups, "Group", false) }

// GroupMemberships returns the kind GroupMembership.
func GroupMemberships() Kind { return iamKind(iamv1alpha1.GroupMemberships, "GroupMembership", false) }

// IAMUsers returns the kind User.
func IAMUsers() Kind { return iamKind(iamv1alpha1.Users, iamv1alpha1.UserKind, true) }

// IAMServiceAccounts returns the kind ServiceAccount of IAM, which is not the ServiceAccount of the core API.
func IAMServiceAccounts() Kind {
	return iamKind(iamv1alpha1.ServiceAccounts, iamv1alpha1.ServiceAccountKind, true)
}

// Organizations returns the kind Organization.
func Organizations() Kind {
	return resourcemanagerKind(resourcemanagerv1alpha1.Organizations, resourcemanagerv1alpha1.OrganizationKind)
}

// Projects returns the kind Project.
func Projects() Kind {
	kind := resourcemanagerKind(resourcemanagerv1alpha1.Projects, resourcemanagerv1alpha1.ProjectKind)
	kind.Status = true // The status records the organization that owns the project.
	return kind
}

func iamKind(resource, kind string, clusterScoped bool) Kind {
	gv := iamv1alpha1.GroupVersion
	return Kind{
		GroupResource: event.GroupResource{Group: gv.Group, Resource: resource},
		Version:       gv.Version, Kind: kind, Status: true, ClusterScoped: clusterScoped,
	}
}

func resourcemanagerKind(resource, kind string) Kind {
	gv := resourcemanagerv1alpha1.GroupVersion
	return Kind{
		GroupResource: event.GroupResource{Group: gv.Group, Resource: resource}, Version: gv.Version, Kind: kind, ClusterScoped: true,
	}
}
