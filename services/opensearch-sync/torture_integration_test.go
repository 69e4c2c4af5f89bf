//go:build integration

package opensearchsync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Nothing is recorded before a write, and none is acknowledged before it is done: whoever comes next finds what was left.
func TestACrashAtAnyPointLeavesNothingInOpenSearch(t *testing.T) {
	for name, c := range map[string]struct {
		// op is the call at which the line is cut, and after whether that is done.
		op    string
		after bool
	}{
		"before a user is written":                    {"PUT internalusers/anna", false},
		"between a user and what is said of him":      {"PUT internalusers/anna", true},
		"before it is recorded what a binding gives":  {"opensearchuserrolebindings/one/status", false},
		"between a binding's record and its mapping":  {"opensearchuserrolebindings/one/status", true},
		"between a mapping and what is said of it":    {"PATCH rolesmapping", true},
		"before a role is said not to have been here": {"opensearchroles/watchers/status", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.Reflector()
			b.connect()
			running := b.serve()
			var down atomic.Bool
			cut := func(after bool) testbed.Fault {
				return func(_ context.Context, op string) error {
					if !down.Load() && (after != c.after || !strings.Contains(op, c.op)) {
						return nil
					}
					down.Store(true)
					return errors.New("the line is cut")
				}
			}
			lines := []*testbed.Traffic{&b.search.Traffic, &b.Kube.Traffic}
			for _, line := range lines {
				line.FailBefore(cut(false))
				line.FailAfter(cut(true))
			}
			b.user("anna")
			b.user("ben")
			b.role("watchers")
			b.bind("one", "watchers", "anna", "ben")
			testbed.Eventually(t, soon, func() error {
				if !down.Load() {
					return errors.New("the line is not cut yet")
				}
				return nil
			})
			running.Stop()
			for _, line := range lines {
				line.FailBefore(nil)
				line.FailAfter(nil)
			}
			b.going(kinds.OpenSearchBindings(), "one") // While nobody is there to see it.
			b.serve()
			b.gone(kinds.OpenSearchBindings(), "one")
			b.absent("rolesmapping/watchers")
			b.bind("one", "watchers", "anna", "ben")
			b.inStep()
			b.leave()
		})
	}
}

// going deletes an object, and does not wait.
func (b *bed) going(kind kinds.Kind, name string) {
	b.T.Helper()
	if err := b.Resource(kind).Namespace(namespace).Delete(b.T.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		b.T.Fatal(err)
	}
}

// gone waits until an object is.
func (b *bed) gone(kind kinds.Kind, name string) {
	b.T.Helper()
	testbed.Eventually(b.T, soon, func() error {
		if _, err := b.Resource(kind).Namespace(namespace).Get(b.T.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is still there, or %w", name, err)
		}
		return nil
	})
}

// declared is what objects ask for, and what others made.
type declared struct {
	users    map[string]bool
	bindings map[string]map[string][]string
	foreign  map[string][]string
}

// mapping of a role, as it is to be.
func (d *declared) mapping(role string) []string {
	all := slices.Clone(d.foreign[role])
	for _, roles := range d.bindings {
		all = append(all, roles[role]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Whatever people declare and delete, and whatever others do meanwhile, OpenSearch has what follows in the end, and who is told of
// everything once more writes nothing.
func TestWhateverHappensOpenSearchHasWhatIsDeclared(t *testing.T) {
	const steps = 60
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("history ", seed), func(t *testing.T) {
			b, r := newBed(t), rand.New(rand.NewPCG(seed, 17))
			reflector := b.Reflector()
			b.write("internalusers/kim", map[string]any{"password": second})
			b.write("roles/theirs", map[string]any{"cluster_permissions": []string{"cluster_monitor"}})
			b.write("rolesmapping/theirs", map[string]any{"users": []string{"kim"}})
			b.connect()
			running := b.serve()
			roles := []string{"theirs", "ours-0", "ours-1"}
			for _, role := range roles[1:] {
				b.role(role)
				b.state(kinds.OpenSearchRoles(), role, "CREATED", "")
			}
			d := &declared{users: map[string]bool{}, bindings: map[string]map[string][]string{}, foreign: map[string][]string{"theirs": {"kim"}}}
			for step := range steps {
				b.step(r, d, roles)
				switch r.IntN(20) {
				case 0: // Others put somebody of theirs beside who is there.
					b.Settled()
					d.foreign["theirs"] = append(d.foreign["theirs"], fmt.Sprint("lee-", step))
					b.write("rolesmapping/theirs", map[string]any{"users": d.mapping("theirs")})
				case 1:
					running.Stop()
					running = b.serve()
				}
			}
			b.Resync(topology.OpensearchSync)
			for _, name := range []string{"u-0", "u-1", "u-2"} {
				if !d.users[name] {
					b.absent("internalusers/" + name)
				} else {
					b.login(name, first, http.StatusOK)
				}
			}
			for _, role := range roles {
				b.mappedTo(role, d.mapping(role)...)
			}
			b.recorded(d)
			b.Settled()
			writes := b.search.Writes()
			b.Quiet("a replay", reflector.Replay)
			if now := b.search.Writes(); now != writes {
				t.Errorf("a replay writes %d times to OpenSearch", now-writes)
			}
			for name := range d.bindings {
				b.going(kinds.OpenSearchBindings(), name)
			}
			for name := range d.users {
				b.going(kinds.OpenSearchUsers(), name)
			}
			for _, role := range roles[1:] {
				b.going(kinds.OpenSearchRoles(), role)
			}
			for _, role := range roles[1:] {
				b.gone(kinds.OpenSearchRoles(), role)
				b.absent("rolesmapping/" + role)
			}
			b.mappedTo("theirs", d.foreign["theirs"]...)
			b.login("kim", second, http.StatusOK)
		})
	}
}

// recorded waits until records say what bindings give, and nothing else: what got no answer is kept in them for a while.
func (b *bed) recorded(d *declared) {
	b.T.Helper()
	testbed.Eventually(b.T, soon, func() error {
		for name, want := range d.bindings {
			records, _, _ := unstructured.NestedSlice(b.get(kinds.OpenSearchBindings(), name).Object, "status", "provisioned")
			if len(records) != len(want) {
				return fmt.Errorf("of %s is recorded %v, want %v", name, records, want)
			}
			for _, r := range records {
				record, _ := r.(map[string]any)
				role, _ := record["role"].(string)
				users, _, _ := unstructured.NestedStringSlice(record, "users")
				if !slices.Equal(slices.Sorted(slices.Values(users)), slices.Sorted(slices.Values(want[role]))) {
					return fmt.Errorf("of %s is recorded %v, want %v", name, records, want)
				}
			}
		}
		return nil
	})
}

// step does one thing that people do.
func (b *bed) step(r *rand.Rand, d *declared, roles []string) {
	b.T.Helper()
	user, binding := fmt.Sprint("u-", r.IntN(3)), fmt.Sprint("b-", r.IntN(3))
	switch r.IntN(6) {
	case 0, 1:
		key := []string{"anna", "ben"}[r.IntN(2)] // The same password, with and without a newline.
		b.put(kinds.OpenSearchUsers(), user, spec(map[string]any{"passwordFrom": map[string]any{"name": "passwords", "key": key}}))
		d.users[user] = true
	case 2:
		b.going(kinds.OpenSearchUsers(), user)
		b.gone(kinds.OpenSearchUsers(), user)
		delete(d.users, user)
	case 3:
		b.going(kinds.OpenSearchBindings(), binding)
		b.gone(kinds.OpenSearchBindings(), binding)
		delete(d.bindings, binding)
	default:
		some := roles[r.IntN(len(roles)):]
		users := []string{"u-0", "u-1", "u-2", "nobody"}[r.IntN(4):]
		b.put(kinds.OpenSearchBindings(), binding, spec(map[string]any{"roles": some, "users": users}))
		d.bindings[binding] = map[string][]string{}
		for _, role := range some {
			d.bindings[binding][role] = users
		}
	}
}
