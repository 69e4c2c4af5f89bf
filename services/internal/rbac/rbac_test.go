package rbac

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/golden"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

// words lists the rights of a as "verb resource.group/name".
func (a ServiceAccount) words() []string {
	var words []string
	for _, r := range slices.Concat(a.Everywhere, a.Own) {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				name := resource + "." + group + "/" + strings.Join(r.ResourceNames, ",")
				for _, verb := range r.Verbs {
					words = append(words, verb+" "+strings.TrimSuffix(strings.TrimSuffix(name, "/"), "."))
				}
			}
		}
	}
	return words
}

// isWriteRight reports whether a right allows changes. Reads, reviews and Events do not count.
func isWriteRight(right string) bool {
	for _, harmless := range []string{"get ", "list ", "watch ", "create tokenreviews.", "create subjectaccessreviews.", "create events"} {
		if strings.HasPrefix(right, harmless) {
			return false
		}
	}
	return true
}

func TestServiceRightsAllowOnlyOwnWrites(t *testing.T) {
	const stores, models = "stores.core.platform-mesh.io", "authorizationmodels.core.platform-mesh.io"
	want := map[string][]string{
		topology.Watcher: {"create leases.coordination.k8s.io", "update leases.coordination.k8s.io/entail-watcher"},
		topology.StoreSync: {
			"adopt " + stores, "create " + models, "create " + stores, "delete " + models, "extend " + stores, "patch apibindings.apis.kcp.io", "patch " + models, "patch " + stores,
			"patch authorizationmodels/status.core.platform-mesh.io", "patch policydocuments/status.iapl.infratographer.com",
			"patch protectedresources.iam.miloapis.com", "patch protectedresources/status.iam.miloapis.com",
			"patch stores/status.core.platform-mesh.io", "record protectedresources.iam.miloapis.com", "record " + models, "record " + stores,
			"create secrets./entail-store-sync-admission", "patch secrets./entail-store-sync-admission",
			"create validatingwebhookconfigurations.admissionregistration.k8s.io/entail-store-sync",
			"patch validatingwebhookconfigurations.admissionregistration.k8s.io/entail-store-sync",
			"update validatingwebhookconfigurations.admissionregistration.k8s.io/entail-store-sync",
		},
		topology.TupleSync: {
			"patch " + models, "patch " + stores, "record " + models, "record " + stores,
			"patch authorizationmodels/status.core.platform-mesh.io", "patch stores/status.core.platform-mesh.io",
			"patch groupmemberships.iam.miloapis.com", "patch groupmemberships/status.iam.miloapis.com",
			"patch policybindings.iam.miloapis.com", "patch policybindings/status.iam.miloapis.com",
			"patch projects.resourcemanager.miloapis.com", "patch projects/status.resourcemanager.miloapis.com",
			"record projects.resourcemanager.miloapis.com", "patch protectedresources/status.iam.miloapis.com",
			"patch roles.iam.miloapis.com", "patch roles/status.iam.miloapis.com",
			"patch serviceaccounts.iam.miloapis.com", "patch users.iam.miloapis.com", "record groupmemberships.iam.miloapis.com",
			"patch groups/status.iam.miloapis.com", "patch organizations/status.resourcemanager.miloapis.com",
			"patch serviceaccounts/status.iam.miloapis.com", "patch users/status.iam.miloapis.com",
		},
		topology.Webhook: {
			"create secrets./entail-webhook-admission", "patch secrets./entail-webhook-admission",
			"create validatingwebhookconfigurations.admissionregistration.k8s.io/entail-webhook",
			"patch validatingwebhookconfigurations.admissionregistration.k8s.io/entail-webhook",
			"update validatingwebhookconfigurations.admissionregistration.k8s.io/entail-webhook",
		},
		topology.ImpliedRole: {
			"bind clusterroles.rbac.authorization.k8s.io", "bind roles.rbac.authorization.k8s.io",
			"create rolebindings.rbac.authorization.k8s.io", "delete rolebindings.rbac.authorization.k8s.io",
			"patch impliedroles/status.role.k8s.com", "patch rolebindings.rbac.authorization.k8s.io",
			"create secrets./entail-implied-role-admission", "patch secrets./entail-implied-role-admission",
			"create validatingwebhookconfigurations.admissionregistration.k8s.io/entail-implied-role",
			"patch validatingwebhookconfigurations.admissionregistration.k8s.io/entail-implied-role",
			"update validatingwebhookconfigurations.admissionregistration.k8s.io/entail-implied-role",
		},
	}
	want[topology.OpensearchSync] = append(want[topology.OpensearchSync], "patch opensearchclusters/status.opensearch.org")
	for _, kind := range []string{"users", "roles", "userrolebindings", "tenants", "actiongroups"} {
		want[topology.OpensearchSync] = append(want[topology.OpensearchSync], "record opensearch"+kind+".opensearch.org")
		for _, group := range []string{"opensearch.org", "opensearch.opster.io"} {
			want[topology.OpensearchSync] = append(want[topology.OpensearchSync],
				"patch opensearch"+kind+"."+group, "patch opensearch"+kind+"/status."+group)
		}
	}
	for _, a := range ServiceAccounts() {
		got := slices.DeleteFunc(a.words(), func(right string) bool { return !isWriteRight(right) })
		slices.Sort(got)
		if slices.Sort(want[a.Service]); !slices.Equal(got, want[a.Service]) {
			t.Errorf("%s may\n%s\nwant\n%s", a.Service, strings.Join(got, "\n"), strings.Join(want[a.Service], "\n"))
		}
	}
}

// isForeignSecretRight reports whether a right is on a Secret that does not belong to the service.
func isForeignSecretRight(right string) bool {
	return strings.Contains(right, "secrets") && !strings.HasSuffix(right, " secrets./entail-implied-role-admission") &&
		!strings.HasSuffix(right, " secrets./entail-store-sync-admission") && !strings.HasSuffix(right, " secrets./entail-webhook-admission")
}

func TestRightsDoNotUseWildcards(t *testing.T) {
	for _, a := range ServiceAccounts() {
		for _, right := range a.words() {
			if strings.ContainsAny(right, "*") || isForeignSecretRight(right) ||
				strings.HasPrefix(right, "escalate ") || strings.HasPrefix(right, "impersonate ") {
				t.Errorf("%s may %s", a.Service, right)
			}
		}
		for _, r := range slices.Concat(a.Everywhere, a.Own) {
			if r.Why == "" || len(r.NonResourceURLs) > 0 {
				t.Errorf("%s has the right %v without a reason, or on a path", a.Service, r.PolicyRule)
			}
		}
	}
}

func TestSecretRightsAreNamespaced(t *testing.T) {
	want := map[string][]string{topology.Watcher: {"list", "watch"}, topology.OpensearchSync: {"get"}}
	for _, a := range ServiceAccounts() {
		var verbs []string
		for _, r := range a.Secrets {
			if r.Why == "" || !slices.Equal(r.APIGroups, []string{""}) || !slices.Equal(r.Resources, []string{"secrets"}) || len(r.ResourceNames) > 0 {
				t.Errorf("%s has among its rights on Secrets %+v", a.Service, r)
			}
			verbs = append(verbs, r.Verbs...)
		}
		if !slices.Equal(verbs, want[a.Service]) {
			t.Errorf("%s may %v Secrets where people say so, want %v", a.Service, verbs, want[a.Service])
		}
		manifest, err := a.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if roles := strings.Count(string(manifest), "name: "+a.SecretsRoleName()+"\n"); roles > 1 || roles == 1 != (len(verbs) > 0) {
			t.Errorf("%s, with %s %d times, binds it or lacks it:\n%s", a.Service, a.SecretsRoleName(), roles, manifest)
		}
	}
}

func TestConsumersCanReadTheirKinds(t *testing.T) {
	for _, s := range slices.Concat(topology.DurableServices(), topology.ReaderServices()) {
		i := slices.IndexFunc(ServiceAccounts(), func(a ServiceAccount) bool { return a.Service == s.Name })
		if i < 0 {
			t.Errorf("%s has no account", s.Name)
			continue
		}
		for _, kind := range s.Kinds {
			if kind == kinds.Secrets().GroupResource { // Services have this right only where it is bound.
				continue
			}
			if right := "get " + kind.String(); !slices.Contains(ServiceAccounts()[i].words(), right) {
				t.Errorf("%s may not %s", s.Name, right)
			}
		}
	}
}

func TestManifestsAreGenerated(t *testing.T) {
	for _, a := range ServiceAccounts() {
		want, err := a.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		golden.CheckFile(t, filepath.Join("../../../deploy/base", a.Service, "rbac.yaml"), want)
	}
	want, err := SecretBindingsManifest()
	if err != nil {
		t.Fatal(err)
	}
	golden.CheckFile(t, "../../../deploy/components/secrets/rbac.yaml", want)
}
