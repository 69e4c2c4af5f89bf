package plan

import (
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// Account is an account that every user is a member of.
type Account struct{ Type, Cluster, Name string }

// WithAccountMembers adds the tuples that make every authenticated user a member of accounts. A declared tuple with the same
// ID stays instead.
func WithAccountMembers(declared []tuple.Tuple, accounts ...Account) []tuple.Tuple {
	if len(accounts) == 0 {
		return declared
	}
	members := []tuple.Tuple{{ID: tuple.ID{Object: "role:authenticated", Relation: "assignee", User: "user:*"}}}
	for _, a := range accounts {
		members = append(members, tuple.Tuple{ID: tuple.ID{
			Object: a.Type + ":" + a.Cluster + "/" + a.Name, Relation: "member", User: "role:authenticated#assignee",
		}})
	}
	return unionByID(declared, members)
}

// AccountsOfStore lists the accounts of a Store that every user is a member of: that of its label, and that of its kcp
// organization.
func AccountsOfStore(accountType, cluster string, s *corev1alpha1.Store, infos []*corev1alpha1.AccountInfo) []Account {
	var accounts []Account
	if name := s.Labels[corev1alpha1.AccountNameLabel]; name != "" {
		accounts = append(accounts, Account{accountType, cluster, name})
	}
	for _, i := range infos {
		if i.Spec.Account == i.Spec.Organization {
			accounts = append(accounts, Account{accountType, i.Spec.Account.OriginCluster, i.Spec.Account.Name})
		}
	}
	return accounts
}
