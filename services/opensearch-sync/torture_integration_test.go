//go:build integration

package opensearchsync_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// going deletes an object without waiting.
func (b *testEnv) going(kind kinds.Kind, name string) {
	b.T.Helper()
	if err := b.ResourceClient(kind).Namespace(namespace).Delete(b.T.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		b.T.Fatal(err)
	}
}

// gone waits until an object is deleted.
func (b *testEnv) gone(kind kinds.Kind, name string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		if _, err := b.ResourceClient(kind).Namespace(namespace).Get(b.T.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is still there, or %w", name, err)
		}
		return nil
	})
}

// roles returns the names of the roles of the torture. The first one belongs to other writers.
func roles() []string { return []string{"theirs", "ours-0", "ours-1"} }

// disruptedUsers returns the names of the users of the torture.
func disruptedUsers() []string { return []string{"u-0", "u-1", "u-2"} }

func TestOpenSearchSyncConvergesUnderRandomFaults(t *testing.T) {
	b := newTestEnv(t)
	reflector := b.Reflector()
	b.write("internalusers/kim", map[string]any{"password": second})
	b.write("roles/theirs", map[string]any{"cluster_permissions": []string{"cluster_monitor"}})
	b.write("rolesmapping/theirs", map[string]any{"users": []string{"kim"}})
	b.connect()
	foreign := []string{"kim"}
	torture := &testenv.DisruptionSuite{
		Env: b.Env, Reflector: reflector, Service: topology.OpensearchSync, OpenSearchTraffic: &b.search.Traffic,
		Serve: func() *testenv.RunningService { return b.serveWith(shortenWaits) },
		BeforeRound: func() {
			b.leaveAll(foreign)
			for _, role := range roles()[1:] {
				b.role(role)
			}
		},
		RandomChange: func(r *rand.Rand) {
			b.step(r)
			if r.IntN(20) == 0 { // Another client adds a user to the mapping.
				foreign = append(foreign, fmt.Sprint("lee-", len(foreign)))
				b.join("theirs", foreign[len(foreign)-1])
			}
		},
		CheckBackend: func() error { return b.asDeclared(foreign) },
		Rounds:       3, ChangesPerDisruption: 8, ChangeInterval: time.Millisecond, ConvergeTimeout: 2 * soon, FailurePercent: 10,
	}
	torture.Run()
	b.leaveAll(foreign)
}

// step makes one random change as a user would.
func (b *testEnv) step(r *rand.Rand) {
	b.T.Helper()
	user, binding := disruptedUsers()[r.IntN(3)], fmt.Sprint("b-", r.IntN(3))
	switch r.IntN(6) {
	case 0, 1:
		key := []string{"anna", "ben"}[r.IntN(2)] // The same password, with and without a newline.
		b.put(kinds.OpenSearchUsers(), user, spec(map[string]any{"passwordFrom": map[string]any{"name": "passwords", "key": key}}))
	case 2:
		b.going(kinds.OpenSearchUsers(), user)
	case 3:
		b.going(kinds.OpenSearchBindings(), binding)
	default:
		b.put(kinds.OpenSearchBindings(), binding, spec(map[string]any{
			"roles": roles()[r.IntN(3):], "users": append(disruptedUsers(), "nobody")[r.IntN(4):],
		}))
	}
}

// join adds a user to the mapping of a role, like another client.
func (b *testEnv) join(role, user string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		status, answer := b.search.RequestAsAdmin(b.T, http.MethodPatch, "/_plugins/_security/api/rolesmapping/"+role,
			[]map[string]string{{"op": "add", "path": "/users/-", "value": user}})
		if status != http.StatusOK {
			return fmt.Errorf("adding %s to %s: %d %s", user, role, status, answer)
		}
		return nil
	})
}

// asDeclared compares OpenSearch with the objects and the entries of other writers.
func (b *testEnv) asDeclared(foreign []string) error {
	b.T.Helper()
	want := map[string][]string{"theirs": slices.Clone(foreign)}
	for _, u := range b.List(kinds.OpenSearchBindings()).Items {
		roles, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "roles")
		users, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "users")
		if err := recorded(u, roles, users); err != nil {
			return err
		}
		for _, role := range roles {
			want[role] = append(want[role], users...)
		}
	}
	for _, role := range roles() {
		slices.Sort(want[role])
		if got := slices.Sorted(slices.Values(b.mapped(role))); !slices.Equal(got, slices.Compact(want[role])) {
			return fmt.Errorf("the mapping of %s: got %q, want %q", role, got, want[role])
		}
	}
	statuses := map[string]int{}
	for _, u := range b.List(kinds.OpenSearchUsers()).Items {
		statuses[u.GetName()] = http.StatusOK
	}
	for _, user := range disruptedUsers() {
		if got, _ := b.search.TryLogin(b.T, user, first); got != cmp.Or(statuses[user], http.StatusUnauthorized) {
			return fmt.Errorf("the login of %s: got status %d; the objects give %d", user, got, statuses[user])
		}
		if got, _ := b.search.RequestAsAdmin(b.T, http.MethodGet, "/_plugins/_security/api/internalusers/"+user, nil); got != cmp.Or(statuses[user], http.StatusNotFound) {
			return fmt.Errorf("the user %s: got status %d; the objects give %d", user, got, statuses[user])
		}
	}
	return nil
}

// recorded returns nil if the status of a binding lists exactly these entries.
func recorded(u unstructured.Unstructured, roles, users []string) error {
	records, _, _ := unstructured.NestedSlice(u.Object, "status", "provisioned")
	if len(records) != len(roles) || u.GetDeletionTimestamp() != nil {
		return fmt.Errorf("binding %s: got the records %v, want the roles %v", u.GetName(), records, roles)
	}
	for _, r := range records {
		record, _ := r.(map[string]any)
		role, _ := record["role"].(string)
		got, _, _ := unstructured.NestedStringSlice(record, "users")
		slices.Sort(got)
		if !slices.Contains(roles, role) || !slices.Equal(got, slices.Sorted(slices.Values(users))) {
			return fmt.Errorf("binding %s: got the record %v, want %v", u.GetName(), record, users)
		}
	}
	return nil
}

// leaveAll deletes all objects. Nothing of them may be left, and all entries of other writers must remain.
func (b *testEnv) leaveAll(foreign []string) {
	b.T.Helper()
	for _, kind := range []kinds.Kind{kinds.OpenSearchBindings(), kinds.OpenSearchUsers(), kinds.OpenSearchRoles()} {
		for _, u := range b.List(kind).Items {
			b.going(kind, u.GetName())
			b.gone(kind, u.GetName())
		}
	}
	for _, role := range roles()[1:] {
		b.absent("rolesmapping/" + role)
		b.absent("roles/" + role)
	}
	b.mappedTo("theirs", foreign...)
	b.login("kim", second, http.StatusOK)
}
