package v1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion of the kinds in this package.
//
//nolint:gochecknoglobals // A schema.GroupVersion cannot be a constant.
var GroupVersion = schema.GroupVersion{Group: "opensearch.org", Version: "v1"}

// LegacyGroup is the one that the public operator had these kinds in before: with the same fields, and the same version.
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

// Finalizer holds an object until what it asked for is no longer in OpenSearch. Other software relies on the name.
const Finalizer = "opensearch.org/opensearch-data"

// Annotations.
const (
	// AdoptAnnotation set to "true" makes what OpenSearch has under the object's name the object's.
	AdoptAnnotation = "opensearch.org/adopt"
	// SourceUIDAnnotation is the UID of the object that this one was migrated from: what bears it in OpenSearch is this one's.
	SourceUIDAnnotation = "opensearch.org/source-uid"
	// BindAnnotation lets a user receive, or a binding give, roles that OpenSearch protects and that admission does not check. The
	// status of the object has its value, which covers this object and its present lists only.
	BindAnnotation = "opensearch.org/bind"
	// ConnectionAnnotation on an OpenSearchCluster names a Secret with a connection: url, and username and password, or
	// tls.crt and tls.key, and ca.crt. It works under the CRD of the public operator, too.
	ConnectionAnnotation = "entail.dev/connection-secret"
	// RecordAnnotation holds a copy of what the status records. opensearch-sync writes it; others need the verb record.
	RecordAnnotation = "entail.dev/opensearch-record"
	// ForgetAnnotation set to the managedServer of the status has what was made there left as it is, and the object treated as if
	// nothing had been made for it. It needs the verb record.
	ForgetAnnotation = "entail.dev/forget-server"
)

// Attributes of a user in OpenSearch that say whose it is. Nobody else is to set them.
const (
	// UIDAttribute is the UID of the OpensearchUser that the user is of.
	UIDAttribute = "k8s-uid"
	// VersionAttribute is written by the public operator at each change of the Secret; it is ignored.
	VersionAttribute = "secret-version"
	// PasswordAttribute stands for the password that was last sent; nobody can tell the password from it.
	PasswordAttribute = "entail-password"
)

// State sums up what became of an object.
type State string

// States, as the public operator has them.
const (
	// Pending waits for something else: the cluster, a Secret, a role.
	Pending State = "PENDING"
	// Created is in OpenSearch.
	Created State = "CREATED"
	// Error needs a person.
	Error State = "ERROR"
	// Ignored was there before, and is left alone.
	Ignored State = "IGNORED"
)

// Condition types.
const (
	// Ready says that OpenSearch has what this generation of the object asks for.
	Ready = "Ready"
	// PasswordTrimmed says that a trailing newline of the Secret's value is not part of the password.
	PasswordTrimmed = "PasswordTrimmed"
	// OtherController says that somebody else writes the same user: nothing is written any more.
	OtherController = "OtherController"
	// Reachable says of an OpenSearchCluster that OpenSearch answers opensearch-sync.
	Reachable = "Reachable"
)
