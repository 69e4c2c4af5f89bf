//go:build integration

package opensearchsync_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
)

// force deletes an object and removes its finalizers.
func (b *testEnv) force(kind kinds.Kind, name string) {
	b.T.Helper()
	api := b.ResourceClient(kind).Namespace(namespace)
	if err := api.Delete(b.T.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.T.Fatal(err)
	}
	_, _ = api.Patch(b.T.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}) // The object may be gone already.
}

// absent waits until OpenSearch has no entity at a path.
func (b *testEnv) absent(path string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		if status, answer := b.search.RequestAsAdmin(b.T, http.MethodGet, "/_plugins/_security/api/"+path, nil); status != http.StatusNotFound {
			return errors.New(path + " is there: " + string(answer))
		}
		return nil
	})
}

func TestForceDeletedObjectIsRemovedFromOpenSearch(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	running := b.serveWith(shortenWaits)
	b.user("anna")
	b.role("watchers")
	b.write("roles/theirs", map[string]any{"cluster_permissions": []string{"cluster_all"}})
	b.write("rolesmapping/theirs", map[string]any{"users": []string{"kim"}})
	b.bind("one", "theirs", "anna", "ben")
	b.bind("two", "theirs", "ben")
	b.bind("three", "theirs", "max", "ned")
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
	b.state(kinds.OpenSearchBindings(), "three", "CREATED", "")
	b.state(kinds.OpenSearchBindings(), "two", "CREATED", "")
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	b.state(kinds.OpenSearchRoles(), "watchers", "CREATED", "")
	running.Stop() // No service runs that could release them.
	b.force(kinds.OpenSearchUsers(), "anna")
	b.force(kinds.OpenSearchRoles(), "watchers")
	b.force(kinds.OpenSearchBindings(), "one")
	b.bind("three", "theirs", "max")
	b.login("anna", first, http.StatusOK)
	b.serveWith(func(c *opensearchsync.Config) {
		shortenWaits(c)
		c.Takeover.SettlingTime = 10 * time.Second
	})
	b.login("anna", first, http.StatusUnauthorized)
	b.absent("roles/watchers")
	b.mappedTo("theirs", "kim", "ben", "max")

	// Later entities and entries of the same names belong to other writers, also while a write of the previous leader may
	// still take effect.
	b.write("roles/watchers", map[string]any{"cluster_permissions": []string{"cluster_monitor"}})
	b.write("internalusers/anna", map[string]any{"password": second})
	b.write("rolesmapping/theirs", map[string]any{"users": []string{"kim", "ben", "max", "anna", "ned"}})
	b.role("other")
	b.state(kinds.OpenSearchRoles(), "other", "CREATED", "")
	b.bind("two", "theirs", "ben", "lee")
	b.mappedTo("theirs", "kim", "ben", "max", "anna", "ned", "lee")
	b.login("anna", second, http.StatusOK)
	if status, _ := b.search.RequestAsAdmin(t, http.MethodGet, "/_plugins/_security/api/roles/watchers", nil); status != http.StatusOK {
		t.Errorf("the role that others have made is gone: %d", status)
	}
	b.remove(kinds.OpenSearchBindings(), "two", "three")
	b.mappedTo("theirs", "kim", "anna", "ned")
	b.remove(kinds.OpenSearchRoles(), "other")
}

// A user object that is created again takes over the old user, even if OpenSearch refuses its password at first. If it
// is deleted meanwhile, the old user is removed, too.
func TestRefusedUserTakesOverOldUserLater(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	running := b.serve()
	names := []string{"anna", "ben"}
	for _, name := range names {
		b.user(name)
		b.login(name, first, http.StatusOK)
	}
	running.Stop()
	for _, name := range names {
		b.force(kinds.OpenSearchUsers(), name)
		b.user(name)
	}
	b.search.FailBefore(func(_ context.Context, op string) error {
		if strings.HasPrefix(op, "PUT internalusers/") {
			return testenv.InjectedResponseError(http.StatusBadRequest, `{"status":"error","reason":"weak password"}`)
		}
		return nil
	})
	b.secret("passwords", map[string]string{"anna": second, "ben": second})
	b.serve()
	for _, name := range names {
		b.state(kinds.OpenSearchUsers(), name, "ERROR", "weak password")
	}
	b.RequestResync(topology.OpensearchSync)
	b.remove(kinds.OpenSearchUsers(), "ben")
	b.absent("internalusers/ben")
	b.search.FailBefore(nil)
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	b.login("anna", second, http.StatusOK)
	b.remove(kinds.OpenSearchUsers(), "anna")
	b.absent("internalusers/anna")
}

// mappedTo waits until the mapping of a role has these users.
func (b *testEnv) mappedTo(role string, users ...string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		if got := b.mapped(role); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(users))) {
			return fmt.Errorf("the mapping of %s is of %q, want %q", role, got, users)
		}
		return nil
	})
}

// A cluster that is being deleted can still be reached while a foreign finalizer holds it.
func TestDeletingClusterIsCleanedUp(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serve()
	b.user("anna")
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	clusters := kinds.OpenSearchClusters().InNamespace(namespace)
	b.SetFinalizers(clusters, namespace, cluster, "example.com/held")
	b.Delete(clusters, cluster)
	b.AwaitCaughtUp(topology.OpensearchSync)
	b.remove(kinds.OpenSearchUsers(), "anna")
	b.absent("internalusers/anna")
	b.RemoveFinalizers(clusters, cluster)
}
