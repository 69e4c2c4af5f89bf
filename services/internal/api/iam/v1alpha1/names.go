package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the group and version of the kinds in this package.
//
//nolint:gochecknoglobals // A schema.GroupVersion cannot be a constant.
var GroupVersion = schema.GroupVersion{Group: "iam.miloapis.com", Version: "v1alpha1"}

// CoreGroup replaces the name of the core API group, which is empty.
const CoreGroup = "core.miloapis.com"

// Resources of the kinds in this package.
const (
	ProtectedResources = "protectedresources"
	Roles              = "roles"
	PolicyBindings     = "policybindings"
	Groups             = "groups"
	GroupMemberships   = "groupmemberships"
	Users              = "users"
	ServiceAccounts    = "serviceaccounts"
)

// Finalizers that other software sets on these kinds. Entail does not need them and removes them.
const (
	ProtectedResourceFinalizer = "iam.miloapis.com/protectedresource"
	RoleFinalizer              = "iam.miloapis.com/openfga-role"
	PolicyBindingFinalizer     = "iam.miloapis.com/policybinding"
	GroupMembershipFinalizer   = "iam.miloapis.com/groupmembership"
	SystemGroupFinalizer       = "iam.miloapis.com/system-group-membership"
)

// Condition types.
const (
	// Ready reports whether the object is in force.
	Ready = "Ready"
	// Registered reports whether this object has registered its kind, even if the object has other errors. A later
	// object cannot register the same kind (ProtectedResource).
	Registered = "Registered"
	// Observed reports whether objects of the kind are published, so that bindings on them can be checked
	// (ProtectedResource).
	Observed = "Observed"
	// PermissionsValid reports whether ProtectedResources register all permissions of the role (Role).
	PermissionsValid = "PermissionsValid"
	// TargetValid reports whether the target exists and has the UID in the binding (PolicyBinding).
	TargetValid = "TargetValid"
	// SubjectValid reports whether every subject exists and has the UID in the binding (PolicyBinding).
	SubjectValid = "SubjectValid"
	// RoleValid reports whether the role exists (PolicyBinding).
	RoleValid = "RoleValid"
	// UserRefValid reports whether the user exists and is the one for which the membership was created
	// (GroupMembership).
	UserRefValid = "UserRefValid"
	// GroupRefValid reports whether the group exists (GroupMembership).
	GroupRefValid = "GroupRefValid"
)

// Reasons of several conditions.
const (
	// Unknown is the initial reason of every condition Ready.
	Unknown = "Unknown"
	// ValidationSuccessful is the reason if references or permissions are valid.
	ValidationSuccessful = "ValidationSuccessful"
	// ValidationFailed is the reason if a reference is not valid.
	ValidationFailed = "ValidationFailed"
	// ReconciliationSuccessful is the reason of a Role or PolicyBinding that is Ready.
	ReconciliationSuccessful = "ReconciliationSuccessful"
	// NotAdopted is the reason if an object is not in force because of the IAM store in OpenFGA. It is not certain that
	// this store belongs to the cluster.
	NotAdopted = "NotAdopted"
	// NoIAMStore is the reason if a condition is unknown because there is no IAM store, or because it is being
	// deleted.
	NoIAMStore = "NoIAMStore"
)

// Reasons of a ProtectedResource. Only the first reports success.
const (
	IAMSystemConfigured = "IAMSystemConfigured"
	// PermissionCollision means that a permission would have the same relation as a permission of an earlier
	// ProtectedResource.
	PermissionCollision = "PermissionCollision"
	// AlreadyRegistered means that an earlier ProtectedResource has registered this kind or plural.
	AlreadyRegistered = "AlreadyRegistered"
	// InvalidName means that a group, kind, plural or permission has an invalid name.
	InvalidName = "InvalidName"
	// ParentCycle means that a parent is below the kind itself.
	ParentCycle = "ParentCycle"
	// ParentNotRegistered means that no ProtectedResource registers the kind of a parent. Bindings on objects of this
	// kind and on the kind still take effect.
	ParentNotRegistered = "ParentNotRegistered"
	// LimitExceeded means that the model has no room for the kind.
	LimitExceeded = "LimitExceeded"
)

// InForce is the reason of [Registered] if no parent is refused. If a parent is refused, the reason is [ParentCycle].
const InForce = "InForce"

// Reasons of [Observed]. Only the first reports success.
const (
	Followed = "Followed"
	// NotFollowed means that bindings on single objects of the kind have no effect.
	NotFollowed = "NotFollowed"
	// Trusted means that bindings on single objects of the kind take effect even if the object does not exist.
	Trusted = "Trusted"
)

// Reasons of a Role.
const (
	InvalidPermissions          = "InvalidPermissions"
	ValidationError             = "ValidationError"
	EffectivePermissionsError   = "EffectivePermissionsError"
	OpenFGAReconciliationFailed = "OpenFGAReconciliationFailed"
)

// Reasons of a PolicyBinding.
const (
	TargetKindNotRecognized          = "TargetKindNotRecognized"
	TargetNotFound                   = "TargetNotFound"
	TargetNamespaceMissing           = "TargetNamespaceMissing"
	TargetUIDMismatch                = "TargetUIDMismatch"
	RoleNotFoundForBinding           = "RoleNotFoundForBinding"
	ResourceSelectorValidationFailed = "ResourceSelectorValidationFailed"
	SubjectValidationFailed          = "SubjectValidationFailed"
	BindingCreationFailed            = "BindingCreationFailed"
)

// Problems of one subject, in the message of [SubjectValid].
const (
	UIDMissing        = "UIDMissing"
	KindNotRecognized = "KindNotRecognized"
	NotFound          = "NotFound"
	NamespaceMissing  = "NamespaceMissing"
	UIDMismatch       = "UIDMismatch"
)

// Reasons of the condition Ready of a GroupMembership or Project. Users, ServiceAccounts, Groups and Organizations
// only have the first.
const (
	Reconciled       = "Reconciled"
	ReferenceInvalid = "ReferenceInvalid"
)
