package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion of the kinds in this package.
//
//nolint:gochecknoglobals // A schema.GroupVersion cannot be a constant.
var GroupVersion = schema.GroupVersion{Group: "iam.miloapis.com", Version: "v1alpha1"}

// CoreGroup stands for the core API group, whose own name is empty.
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

// Finalizers that other software sets on these kinds. Entail needs none, and takes them off.
const (
	ProtectedResourceFinalizer = "iam.miloapis.com/protectedresource"
	RoleFinalizer              = "iam.miloapis.com/openfga-role"
	PolicyBindingFinalizer     = "iam.miloapis.com/policybinding"
	GroupMembershipFinalizer   = "iam.miloapis.com/groupmembership"
	SystemGroupFinalizer       = "iam.miloapis.com/system-group-membership"
)

// Condition types.
const (
	// Ready says that what the object asks for is in force.
	Ready = "Ready"
	// Registered says that the kind is that of this object, whatever else may be wrong: who claims it later does not get it
	// (ProtectedResource).
	Registered = "Registered"
	// Observed says that objects of the kind are followed, so that bindings on them can be checked (ProtectedResource).
	Observed = "Observed"
	// PermissionsValid says that some ProtectedResource has every permission of the role (Role).
	PermissionsValid = "PermissionsValid"
	// TargetValid says that the target exists and is the one that was meant (PolicyBinding).
	TargetValid = "TargetValid"
	// SubjectValid says so of every subject (PolicyBinding).
	SubjectValid = "SubjectValid"
	// RoleValid says that the role exists (PolicyBinding).
	RoleValid = "RoleValid"
	// UserRefValid says that the user exists, and is the one that the membership was made for (GroupMembership).
	UserRefValid = "UserRefValid"
	// GroupRefValid says that the group exists (GroupMembership).
	GroupRefValid = "GroupRefValid"
)

// Reasons of several conditions.
const (
	// Unknown is what every Ready begins with.
	Unknown = "Unknown"
	// ValidationSuccessful goes with every valid reference and permission.
	ValidationSuccessful = "ValidationSuccessful"
	// ValidationFailed goes with a reference that leads nowhere.
	ValidationFailed = "ValidationFailed"
	// ReconciliationSuccessful goes with a Role or PolicyBinding that is Ready.
	ReconciliationSuccessful = "ReconciliationSuccessful"
	// NotAdopted goes with what is in force nowhere, because the IAM store in OpenFGA is not known to be this cluster's.
	NotAdopted = "NotAdopted"
	// NoIAMStore goes with what nobody can tell of, because there is no IAM store, or it is to go.
	NoIAMStore = "NoIAMStore"
)

// Reasons of a ProtectedResource. The first is good.
const (
	IAMSystemConfigured = "IAMSystemConfigured"
	// PermissionCollision: a permission would be stored under the same relation as that of an earlier ProtectedResource.
	PermissionCollision = "PermissionCollision"
	// AlreadyRegistered: an earlier ProtectedResource has this kind or this plural.
	AlreadyRegistered = "AlreadyRegistered"
	// InvalidName: a group, kind, plural or permission that cannot be one.
	InvalidName = "InvalidName"
	// ParentCycle: its parents lead back to itself.
	ParentCycle = "ParentCycle"
	// ParentNotRegistered: no ProtectedResource has the kind of a parent. Bindings on objects and kinds act all the same.
	ParentNotRegistered = "ParentNotRegistered"
	// LimitExceeded: the model has no room for it.
	LimitExceeded = "LimitExceeded"
)

// InForce is the reason of [Registered] where every parent is one; [ParentCycle] where one is refused.
const InForce = "InForce"

// Reasons of [Observed]. The first is good.
const (
	Followed = "Followed"
	// NotFollowed: bindings on single objects of the kind give nothing.
	NotFollowed = "NotFollowed"
	// Trusted: they do, whether or not there is such an object.
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

// What a message of [SubjectValid] says of one subject.
const (
	UIDMissing        = "UIDMissing"
	KindNotRecognized = "KindNotRecognized"
	NotFound          = "NotFound"
	NamespaceMissing  = "NamespaceMissing"
	UIDMismatch       = "UIDMismatch"
)

// Reasons of a GroupMembership or Project that is Ready, or is not; and of a User, ServiceAccount, Group or Organization that is.
const (
	Reconciled       = "Reconciled"
	ReferenceInvalid = "ReferenceInvalid"
)
