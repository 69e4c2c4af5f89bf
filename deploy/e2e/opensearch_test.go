//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// TestOpenSearchFollowsSample runs README and the guides, which need the same servers. Then it changes a password, and deletes two
// bindings that give the same role.
func TestOpenSearchFollowsSample(t *testing.T) {
	dir, err := os.MkdirTemp("", "entail-e2e-") //nolint:usetesting // OpenSearch does not run as root, and passes through it.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := up(t, dir, "--opensearch", "--samples", "deploy/samples")
	t.Run("README and guides work as printed", func(t *testing.T) { documentsWorkAsPrinted(t, m, dir) })
	core, search := schema.GroupVersion{Version: "v1"}, schema.GroupVersion{Group: "opensearch.org", Version: "v1"}
	objects := m.objects(t)
	may := func(status int, name, password, path string) func(context.Context) error {
		return func(ctx context.Context) error { return m.searchSays(ctx, status, name, password, path) }
	}
	const first, second, authinfo, logs = "cobalt-Ferret-91-orbit", "cobalt-Ferret-92-orbit", "/_plugins/_security/authinfo", "/logs-1/_search"
	eventually(t, soon, "anna logs in", may(http.StatusOK, "anna", first, authinfo))
	eventually(t, soon, "ben reads, and there is nothing yet", may(http.StatusNotFound, "ben", "umbra-Lantern-37-quartz", logs))
	eventually(t, soon, "of what is not theirs they read nothing", may(http.StatusForbidden, "anna", first, "/other/_search"))

	secrets := objects.Resource(core.WithResource("secrets")).Namespace("default")
	change := fmt.Appendf(nil, `{"stringData":{"anna":%q}}`, second)
	if _, err := secrets.Patch(t.Context(), "search-passwords", types.MergePatchType, change, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "the old password is refused", may(http.StatusUnauthorized, "anna", first, authinfo))
	eventually(t, soon, "the new one is taken", may(http.StatusOK, "anna", second, authinfo))

	bindings := objects.Resource(search.WithResource("opensearchuserrolebindings")).Namespace("default")
	if err := bindings.Delete(t.Context(), "operators", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "the binding is gone", func(ctx context.Context) error {
		err := m.searchSays(ctx, http.StatusNotFound, "ben", "umbra-Lantern-37-quartz", logs)
		if errors.As(err, new(statusError)) {
			t.Fatalf("who has a role by another binding: %v", err)
		}
		if err != nil {
			return err
		}
		return m.searchSays(ctx, http.StatusForbidden, "ben", "umbra-Lantern-37-quartz", "/_cluster/health")
	})
	if err := bindings.Delete(t.Context(), "readers", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "ben reads no more", may(http.StatusForbidden, "ben", "umbra-Lantern-37-quartz", logs))
	m.stop(t, syscall.SIGTERM)
}

// searchSays sends a request to OpenSearch as a user, and requires a status.
func (m *machine) searchSays(ctx context.Context, want int, name, password, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(m.OpenSearch, "/")+path, http.NoBody)
	if err != nil {
		return err
	}
	request.SetBasicAuth(name, password)
	// The server's authority is in a directory of another user, and its identity is not under test.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != want {
		return fmt.Errorf("%s of %s: %w, want %d", path, name, statusError(answer.StatusCode), want)
	}
	return nil
}

// statusError is a response of OpenSearch with another status, unlike a failed connection.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("answers %d", int(e)) }
