//go:build integration

package tuplesync_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// A store of the name that others have filled is left alone until somebody says that it is to be taken, or that it is ours.
func TestForeignIAMStoreIsKeptUntilAdopted(t *testing.T) {
	b := newIAMTestEnv(t)
	declare := func(adoption corev1alpha1.Adoption, texts ...string) {
		b.Kube.Apply(t, kinds.Stores(), "iam", corev1alpha1.StoreSpec{CoreModule: "module entail\n\ntype cluster\n", Adoption: adoption, Tuples: tuples(texts...)})
	}
	declare("")
	theirs := []string{iam.GroupType + ":theirs#member@" + iam.UserType + ":u/somebody"}
	b.write(b.id, theirs, nil)
	b.StartReflector()
	running := b.serve()
	b.role("viewer", nil, getProject)
	b.ready(kinds.IAMRoles(), "viewer", iamv1alpha1.NotAdopted)
	if held := b.holds(b.id); !slices.Equal(held, theirs) {
		t.Fatalf("it holds %v, want %v", held, theirs)
	}
	api, err := kube.New(b.Kube.AdminConfig(), "local", "test")
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := api.ClusterUID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	declare("", "store:iam#owner@cluster:"+cluster)
	b.ready(kinds.IAMRoles(), "viewer", bound)
	testenv.Eventually(t, soon, func() error {
		held := b.holds(b.id)
		if slices.Contains(held, theirs[0]) || !slices.ContainsFunc(held, func(h string) bool { return strings.HasPrefix(h, iam.RoleType) }) {
			return fmt.Errorf("ours, it holds %v", held)
		}
		return nil
	})
	declare("")
	b.ready(kinds.IAMRoles(), "viewer", iamv1alpha1.NotAdopted)
	b.write(b.id, append(theirs, "store:iam#owner@cluster:another"), nil)
	declare("", "store:iam#owner@cluster:"+cluster) // Whose it is, it does not say clearly.
	running.Stop()
	b.serve()
	b.role("viewer", nil, editProject)
	b.ready(kinds.IAMRoles(), "viewer", iamv1alpha1.NotAdopted)
	if held := b.holds(b.id); !slices.Contains(held, theirs[0]) {
		t.Errorf("another cluster's, it holds %v", held)
	}
	declare(corev1alpha1.AdoptionAlways)
	b.ready(kinds.IAMRoles(), "viewer", bound)
}
