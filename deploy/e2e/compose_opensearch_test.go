//go:build compose

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
)

// openSearchFollowsSample follows the steps of docs/operate/compose.md for OpenSearch, and applies its sample.
func openSearchFollowsSample(t *testing.T, m *machine) {
	t.Helper()
	client, err := kubernetes.NewForConfig(m.config(t))
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "local-opensearch"}, Data: map[string][]byte{"url": []byte("https://opensearch:9200")},
	}
	administrator := filepath.Join(data(t, "init"), "opensearch-client")
	for _, file := range []string{"ca.crt", "tls.crt", "tls.key"} {
		if secret.Data[file], err = os.ReadFile(filepath.Join(administrator, file)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for service, role := range map[string]string{"opensearch-sync": "entail-opensearch-secrets", "watcher": "entail-watcher-secrets"} {
		may := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "entail-system", Name: service}},
		}
		if _, err := client.RbacV1().RoleBindings("default").Create(t.Context(), may, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i, isReady := range applySamples(t, m, "opensearch.yaml") {
		if i > 1 { // The first two, the cluster and the Secret, have no condition Ready.
			eventually(t, soon, "what the sample declares is ready", isReady)
		}
	}
	var ben struct{ Roles []string }
	said := compose(t, "exec", "opensearch", "curl", "--silent", "--cacert", "/usr/share/opensearch/config/entail/ca.crt",
		"--user", "ben:umbra-Lantern-37-quartz", "https://localhost:9200/_plugins/_security/authinfo")
	if err := json.Unmarshal([]byte(said), &ben); err != nil || !slices.Contains(ben.Roles, "logs-writer") {
		t.Errorf("ben is %s, %v", said, err)
	}
	said = compose(t, "exec", "opensearch", "curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}",
		"--cacert", "/usr/share/opensearch/config/entail/ca.crt", "--user", "admin:admin", "https://localhost:9200/")
	if said != "401" {
		t.Errorf("who has a password that everybody knows is answered %s", said)
	}
	watchers := []string{m.SyncService, "http://" + containerAddress(t, "watcher-standby") + ":8080"}
	eventually(t, soon, "the watcher that leads follows the two Secrets that objects name", func(ctx context.Context) error {
		var errs []error
		for _, watcher := range watchers {
			err := measures(ctx, watcher, `entail_watcher_objects{kind="secrets/default"} 2`)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	bindings := m.objects(t).Resource(schema.GroupVersionResource{Group: "opensearch.org", Version: "v1", Resource: "opensearchuserrolebindings"}).Namespace("default")
	if err := bindings.Delete(t.Context(), "operators", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "the binding is gone", func(ctx context.Context) error { return gone(ctx, bindings, "operators") })
}

// measures returns an error unless the metrics of a service contain the line.
func measures(ctx context.Context, service, line string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, service+"/metrics", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && !slices.Contains(strings.Split(string(text), "\n"), line) {
		err = fmt.Errorf("%s does not say %s", service, line)
	}
	return err
}
