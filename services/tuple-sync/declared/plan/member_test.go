package plan

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

func TestWithAccountMembersAddsTuples(t *testing.T) {
	declared := []tuple.Tuple{
		parseTuple("document:1", "viewer", "user:anne"),
		{ID: tuple.ID{Object: "role:authenticated", Relation: "assignee", User: "user:*"}, Condition: "office_hours"},
	}
	if got := WithAccountMembers(declared); !slices.Equal(got, declared) {
		t.Errorf("without an account: %v", got)
	}
	want := append(slices.Clone(declared),
		parseTuple("account:c1/acme", "member", "role:authenticated#assignee"), parseTuple("account:c2/beta", "member", "role:authenticated#assignee"))
	got := WithAccountMembers(declared, Account{"account", "c1", "acme"}, Account{"account", "c2", "beta"}, Account{"account", "c1", "acme"})
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAccountMemberTuplesGrantMembership(t *testing.T) {
	want := []string{
		"role:authenticated#assignee@user:*",
		"core_platform-mesh_io_account:cluster-id/acme#member@role:authenticated#assignee",
	}
	var got []string
	for _, tuple := range WithAccountMembers(nil, Account{corev1alpha1.AccountType, "cluster-id", "acme"}) {
		got = append(got, tuple.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAccountsOfStore(t *testing.T) {
	acme, team := corev1alpha1.AccountLocation{Name: "acme", OriginCluster: "orgs"}, corev1alpha1.AccountLocation{Name: "team", OriginCluster: "acme-ws"}
	info := func(account corev1alpha1.AccountLocation) *corev1alpha1.AccountInfo {
		return &corev1alpha1.AccountInfo{Spec: corev1alpha1.AccountInfoSpec{Account: account, Organization: acme}}
	}
	for name, test := range map[string]struct {
		labels map[string]string
		infos  []*corev1alpha1.AccountInfo
		want   []Account
	}{
		"none":            {nil, nil, nil},
		"a label":         {map[string]string{corev1alpha1.AccountNameLabel: "shop"}, nil, []Account{{"account", "local", "shop"}}},
		"an empty label":  {map[string]string{corev1alpha1.AccountNameLabel: ""}, nil, nil},
		"an organization": {nil, []*corev1alpha1.AccountInfo{info(team), info(acme)}, []Account{{"account", "orgs", "acme"}}},
	} {
		s := &corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{Labels: test.labels}}
		if got := AccountsOfStore("account", "local", s, test.infos); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
