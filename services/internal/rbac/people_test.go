package rbac

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/golden"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// kindsAllowedBy lists the kinds for which a Kubernetes ClusterRole gives a verb by Entail's aggregated roles. Larger
// roles include smaller ones.
func kindsAllowedBy(verb string, partOf ...string) []string {
	var resources []string
	for _, r := range UserRoles() {
		for _, right := range r.Rights {
			if slices.Contains(partOf, r.PartOf) && slices.Contains(right.Verbs, verb) {
				resources = append(resources, right.Resources...)
			}
		}
	}
	slices.Sort(resources)
	return resources
}

func TestViewRoleReadsEveryKind(t *testing.T) {
	var ours []string
	for _, kind := range kinds.ConsumedKinds() {
		if _, err := os.Stat(filepath.Join("../../../deploy/crd", kind.Group+"_"+kind.Resource+".yaml")); err == nil {
			ours = append(ours, kind.Resource)
		}
	}
	definitions, err := filepath.Glob("../../../deploy/crd/*.yaml")
	if err != nil || len(definitions) != len(ours) {
		t.Fatalf("%d definitions of %v: %v", len(definitions), ours, err)
	}
	for _, kind := range kinds.LegacyOpenSearchKinds() {
		ours = append(ours, kind.Resource)
	}
	slices.Sort(ours)
	for _, verb := range []string{"get", "list", "watch"} {
		if got := kindsAllowedBy(verb, "view"); !slices.Equal(got, ours) {
			t.Errorf("role view: got %s on %v, want %v", verb, got, ours)
		}
	}
}

func TestAggregatedRolesGiveWriteRights(t *testing.T) {
	for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
		for _, tc := range []struct {
			has  []string
			want string
		}{
			{[]string{"view"}, ""},
			{[]string{"view", "edit"}, "policydocuments"},
			{[]string{"view", "edit", "admin"}, "impliedroles policydocuments"},
		} {
			if got := strings.Join(kindsAllowedBy(verb, tc.has...), " "); got != tc.want {
				t.Errorf("roles %v: got %s on %q, want %q", tc.has, verb, got, tc.want)
			}
		}
	}
}

func TestUserRolesGiveOnlyListedRights(t *testing.T) {
	for _, r := range UserRoles() {
		for _, right := range r.Rights {
			text := strings.Join(slices.Concat(right.Verbs, right.APIGroups, right.Resources, right.NonResourceURLs), " ")
			text = strings.ReplaceAll(strings.ReplaceAll(text, "policybindings", ""), "opensearchuserrolebindings", "")
			for _, no := range []string{"bind", "escalate", "impersonate", "*", "/status ", "/finalizers", "rbac.authorization.k8s.io", "secrets"} {
				if strings.Contains(strings.ReplaceAll(text, "/entail/status", "")+" ", no) {
					t.Errorf("%s has %s", r.Name, text)
				}
			}
			if right.Why == "" || r.PartOf != "" && len(right.NonResourceURLs) > 0 {
				t.Errorf("%s has %s without a reason, or on a path", r.Name, text)
			}
		}
	}
}

func TestUserRolesManifestIsGenerated(t *testing.T) {
	want, err := PeopleRolesManifest()
	if err != nil {
		t.Fatal(err)
	}
	golden.CheckFile(t, "../../../deploy/base/roles.yaml", want)
}
