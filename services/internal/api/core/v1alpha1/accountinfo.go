package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// AccountInfos is the resource of [AccountInfo].
	AccountInfos = "accountinfos"
	// AccountInfoName is that of the one AccountInfo of a workspace.
	AccountInfoName = "account"
	// AccountType is the type of accounts in models, unless services are told otherwise.
	AccountType = "core_platform-mesh_io_account"
)

// AccountInfo holds the fields that Entail reads of the kcp object that names the account and the organization of a
// workspace. Other software defines and writes it.
type AccountInfo struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec AccountInfoSpec `json:"spec"`
}

// AccountInfoSpec names the account and the organization of a workspace.
type AccountInfoSpec struct {
	Account      AccountLocation `json:"account"`
	Organization AccountLocation `json:"organization"`
}

// AccountLocation names an account and the cluster that declares it.
type AccountLocation struct {
	Name string `json:"name"`
	// OriginCluster is the logical cluster that holds the account, and for an organization its Store.
	OriginCluster string `json:"originClusterId"`
}
