package v1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the group and version of the kinds in this package.
//
//nolint:gochecknoglobals // A schema.GroupVersion cannot be a constant.
var GroupVersion = schema.GroupVersion{Group: "opensearch.org", Version: "v1"}

// LegacyGroup is the former API group of these kinds in the public operator. The fields and the version are the same.
const LegacyGroup = "opensearch.opster.io"

// Resources of the kinds in this package.
const (
	Clusters     = "opensearchclusters"
	Users        = "opensearchusers"
	Roles        = "opensearchroles"
	Bindings     = "opensearchuserrolebindings"
	Tenants      = "opensearchtenants"
	ActionGroups = "opensearchactiongroups"
)

// Finalizer delays the deletion of an object until its entity in OpenSearch is removed. Other software relies on this
// name.
const Finalizer = "opensearch.org/opensearch-data"

// Annotations.
const (
	// AdoptAnnotation set to "true" makes the object take over an existing entity with its name in OpenSearch.
	AdoptAnnotation = "opensearch.org/adopt"
	// SourceUIDAnnotation is the UID of the object from which this object was migrated. An entity in OpenSearch with
	// this UID belongs to the new object.
	SourceUIDAnnotation = "opensearch.org/source-uid"
	// BindAnnotation approves roles that OpenSearch protects, for a user or a binding, where admission does not check
	// them. Its value is in the status of the object. The approval covers only this object and its present lists.
	BindAnnotation = "opensearch.org/bind"
	// ConnectionAnnotation on an OpenSearchCluster names a Secret with a connection: url, and username and password,
	// or tls.crt and tls.key, and ca.crt. It also works with the public operator's CRD.
	ConnectionAnnotation = "entail.dev/connection-secret"
	// RecordAnnotation holds a copy of the records in the status. opensearch-sync writes the annotation; other users
	// need the verb record.
	RecordAnnotation = "entail.dev/opensearch-record"
	// ForgetAnnotation, set to status.managedServer, makes opensearch-sync leave the object's data on that server as
	// it is and treat the object as new. It requires the verb record.
	ForgetAnnotation = "entail.dev/forget-server"
)

// Attributes of a user in OpenSearch that identify its owner. Only opensearch-sync sets them.
const (
	// UIDAttribute is the UID of the OpensearchUser that owns the user.
	UIDAttribute = "k8s-uid"
	// VersionAttribute is set by the public operator at each change of the Secret. Entail ignores it.
	VersionAttribute = "secret-version"
	// PasswordAttribute identifies the password that was last sent. The password cannot be computed from it.
	PasswordAttribute = "entail-password"
)

// State summarizes the result for an object.
type State string

// States, with the names of the public operator.
const (
	// Pending means that the object waits for the cluster, a Secret or a role.
	Pending State = "PENDING"
	// Created means that the entity exists in OpenSearch.
	Created State = "CREATED"
	// Error means that a user must correct something.
	Error State = "ERROR"
	// Ignored means that the entity existed before the object and is not changed.
	Ignored State = "IGNORED"
)

// Condition types.
const (
	// Ready reports whether OpenSearch holds the entity as this generation of the object declares it.
	Ready = "Ready"
	// PasswordTrimmed reports that a trailing newline in the Secret is not part of the password.
	PasswordTrimmed = "PasswordTrimmed"
	// OtherController reports that another controller writes the same user. Entail then writes nothing.
	OtherController = "OtherController"
	// Reachable reports whether OpenSearch answers requests of opensearch-sync (OpenSearchCluster).
	Reachable = "Reachable"
)
