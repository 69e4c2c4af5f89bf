package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// AccountInfos is the resource of [AccountInfo].
	AccountInfos = "accountinfos"
	// AccountInfoName is the name of the only AccountInfo of a workspace.
	AccountInfoName = "account"
	// AccountType is the default type of accounts in models.
	AccountType = "core_platform-mesh_io_account"
)

// AccountInfo holds the fields that Entail reads of a kcp object. The object names the account and the organization of
// a workspace. Other software defines and writes it.
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
	// OriginCluster is the logical cluster that holds the account. For an organization, it also holds the
	// organization's Store.
	OriginCluster string `json:"originClusterId"`
}
