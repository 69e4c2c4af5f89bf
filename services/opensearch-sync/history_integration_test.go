//go:build integration

package opensearchsync_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// disruption is the fault that accompanies the edits of a step.
type disruption string

const (
	calm       disruption = "nothing else happens"
	restart    disruption = "the service stops before, and starts after"
	crash      disruption = "the service crashes after, and starts"
	outage     disruption = "OpenSearch is unreachable"
	definition disruption = "a foreign definition drops fields of statuses"
)

// objectEdit changes Kubernetes or OpenSearch. The reference already includes it.
type objectEdit struct {
	text string
	do   func(*executor) error
}

// history creates random edits, and tracks in its reference what they declare.
type history struct {
	expectedContent
	random     *rand.Rand
	prefix     string
	disruption disruption

	// objectsTouched and foreignTouched hold the ids and paths that objects and other clients touch in this step.
	objectsTouched, foreignTouched map[string]bool
	// changed and used hold the namespaces whose connection changes in this step, and those that need it.
	changed, used map[*historyNamespace]bool
}

func newHistory(random *rand.Rand, prefix string) *history {
	h := &history{random: random, prefix: prefix, expectedContent: expectedContent{
		objects: map[string]*declaredPointer{}, foreign: map[string]string{}, stale: map[string]*historyNamespace{}, edited: map[string]bool{},
	}}
	for _, name := range []string{"a", "b"} {
		h.spaces = append(h.spaces, &historyNamespace{name: prefix + name, passwords: map[string]string{}})
	}
	return h
}

// kindOf returns the kind of the objects that declare entities of a kind of the security API.
func kindOf(apiKind string) kinds.Kind {
	return map[string]kinds.Kind{
		"internalusers": kinds.OpenSearchUsers(), "roles": kinds.OpenSearchRoles(), "rolesmapping": kinds.OpenSearchBindings(),
		"tenants": kinds.OpenSearchTenants(), "actiongroups": kinds.OpenSearchActionGroups(),
	}[apiKind]
}

// pick returns one of the values.
func pick[T any](h *history, values ...T) T { return values[h.random.IntN(len(values))] }

// subset returns a part of the values.
func subset(h *history, values ...any) []any {
	return slices.DeleteFunc(values, func(any) bool { return h.random.IntN(2) == 0 })
}

// start creates the namespaces and cluster objects. Other clients write some entities first, so that later objects
// meet them.
func (h *history) start(u disruption) (all []objectEdit) {
	h.begin(u)
	for range 8 {
		if op := h.foreignEdit(); op != nil {
			all = append(all, *op)
		}
	}
	for _, s := range h.spaces {
		all = append(all, *h.createNamespace(s), *h.connection(s, false))
	}
	return all
}

// step returns random edits. No object is touched twice, and no path by an object and by another client, because
// their order would not be certain.
func (h *history) step(u disruption) (all []objectEdit) {
	h.begin(u)
	count := 1 + h.random.IntN(5)
	for tries := 0; tries < 50 && len(all) < count; tries++ {
		if op := h.next(); op != nil {
			all = append(all, *op)
		}
	}
	return all
}

func (h *history) begin(u disruption) {
	h.disruption, h.objectsTouched, h.foreignTouched = u, map[string]bool{}, map[string]bool{}
	h.changed, h.used = map[*historyNamespace]bool{}, map[*historyNamespace]bool{}
}

// next returns a random edit, or nil if it is not possible now.
func (h *history) next() *objectEdit {
	s := h.spaces[h.random.IntN(len(h.spaces))]
	switch n := h.random.IntN(24); {
	case s.deleted:
		return nil
	case !s.exists:
		return h.createNamespace(s)
	case n == 0:
		return h.deleteNamespace(s)
	case n <= 3 || !s.cluster && n <= 9:
		return h.connection(s, n%2 == 0)
	case n == 4:
		return h.password(s)
	case n <= 10:
		return h.foreignEdit()
	}
	apiKind := pick(h, "internalusers", "roles", "rolesmapping", "rolesmapping", "tenants", "actiongroups")
	id := strings.Join([]string{s.name, apiKind, pick(h, "x0", "x1")}, "/")
	d := h.objects[id]
	switch n := h.random.IntN(10); {
	case d == nil || n <= 3:
		return h.apply(s, apiKind, id)
	case n <= 6:
		return h.remove(d)
	default:
		return h.replace(d, n <= 8)
	}
}

// createNamespace creates a namespace with its Secrets.
func (h *history) createNamespace(s *historyNamespace) *objectEdit {
	s.exists, s.secret = true, true
	for _, key := range []string{"x", "y"} {
		s.passwords[key] = newPassword(h.random)
	}
	passwords := maps.Clone(s.passwords)
	return &objectEdit{"create namespace " + s.name, func(t *executor) error {
		t.CreateNamespace(s.name)
		return errors.Join(t.connectionSecret(s.name), t.putSecret(s.name, "passwords", passwords))
	}}
}

func newPassword(random *rand.Rand) string {
	return fmt.Sprint("cobalt-Ferret-", random.IntN(1e6), "-orbit")
}

// deleteNamespace deletes a namespace. The service must not stop now, because it cleans up through its open connection.
func (h *history) deleteNamespace(s *historyNamespace) *objectEdit {
	if h.disruption == restart || h.disruption == crash || !s.connected() || !s.memory || h.changed[s] || h.used[s] {
		return nil
	}
	for _, d := range h.list() {
		if d.space == s && !h.claim(d, nil) {
			return nil
		}
	}
	for _, d := range h.list() {
		if d.space == s {
			h.deleted(d)
		}
	}
	h.changed[s] = true
	s.deleted, s.cluster, s.secret = true, false, false
	return &objectEdit{"delete namespace " + s.name, func(t *executor) error {
		t.DeleteNamespace(s.name)
		return nil
	}}
}

// password changes a password in the Secret, and so the content of users.
func (h *history) password(s *historyNamespace) *objectEdit {
	key := pick(h, "x", "y")
	for _, d := range h.list() {
		if d.space == s && d.key == key && !d.deleted && (h.objectsTouched[d.id] || !h.free(d.now, h.foreignTouched)) {
			return nil
		}
	}
	s.passwords[key] = newPassword(h.random)
	for _, d := range h.list() {
		if d.space == s && d.key == key && !d.deleted {
			h.claim(d, nil)
			now := map[string]string{}
			for path := range d.now {
				now[path] = s.passwords[key]
			}
			d.declare(now)
		}
	}
	passwords := maps.Clone(s.passwords)
	return &objectEdit{fmt.Sprintf("set password %s of %s: %s", key, s.name, s.passwords[key]), func(t *executor) error { return t.putSecret(s.name, "passwords", passwords) }}
}

// free reports whether none of the paths is among the touched ones. All entries of a mapping are one document.
func (h *history) free(paths map[string]string, touched map[string]bool) bool {
	return !slices.ContainsFunc(slices.Collect(maps.Keys(paths)), func(path string) bool { return touched[documentLock(path)] })
}

// claim marks an object and its paths as touched. It returns false if that is not possible in this step.
func (h *history) claim(d *declaredPointer, now map[string]string) bool {
	if h.objectsTouched[d.id] || !h.free(d.now, h.foreignTouched) || !h.free(now, h.foreignTouched) || d.adopts && !h.needConnection(d.space) {
		return false
	}
	h.objectsTouched[d.id] = true
	for _, paths := range []map[string]string{d.now, now} {
		for path := range paths {
			h.objectsTouched[documentLock(path)] = true
		}
	}
	return true
}

// needConnection reserves the connection of a namespace for this step. It returns false if that is not possible.
func (h *history) needConnection(s *historyNamespace) bool {
	if !s.connected() || h.changed[s] {
		return false
	}
	h.used[s] = true
	return true
}

// fill makes all clusters reachable, and declares an object of each kind in each namespace.
func (h *history) fill(u disruption) (all []objectEdit) {
	h.begin(u)
	for _, s := range h.spaces {
		if s.deleted {
			continue
		}
		if !s.exists {
			all = append(all, *h.createNamespace(s))
		}
		for !s.connected() {
			all = append(all, *h.connection(s, false))
		}
		for _, apiKind := range apiKinds() {
			if op := h.apply(s, apiKind, strings.Join([]string{s.name, apiKind, "x0"}, "/")); op != nil {
				all = append(all, *op)
			}
		}
	}
	return all
}

// cutOff deletes objects of reachable clusters together with the cluster objects and their Secrets. After a restart the
// service cannot reach OpenSearch, and must hold the objects.
func (h *history) cutOff(u disruption) (all []objectEdit) {
	h.begin(u)
	for _, s := range h.spaces {
		if !s.connected() {
			continue
		}
		all = append(all, *h.disconnect(s, true), *h.disconnect(s, false))
		for _, d := range h.list() {
			if d.space != s {
				continue
			}
			if op := h.remove(d); op != nil {
				all = append(all, *op)
			}
		}
	}
	h.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// reconnect makes all clusters reachable, so that nothing is held.
func (h *history) reconnect(u disruption) (all []objectEdit) {
	h.begin(u)
	for _, s := range h.spaces {
		for s.exists && !s.deleted && !s.connected() {
			if op := h.connection(s, false); op != nil {
				all = append(all, *op)
			}
		}
	}
	return all
}

// end deletes everything that objects declare, in any order.
func (h *history) end(u disruption) (all []objectEdit) {
	h.begin(u)
	for _, s := range h.spaces {
		if h.random.IntN(2) == 0 {
			if op := h.deleteNamespace(s); op != nil {
				all = append(all, *op)
				continue
			}
		}
		for _, d := range h.list() {
			if d.space == s && !d.deleted {
				id := d.id
				h.deleted(d)
				all = append(all, objectEdit{"delete " + id, func(t *executor) error { return t.remove(id) }})
			}
		}
		for _, secret := range []bool{false, true} {
			if s.connected() && s.memory && u == calm && h.random.IntN(2) == 0 {
				all = append(all, *h.disconnect(s, secret))
			}
		}
	}
	h.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// disconnectAll deletes the cluster objects, so that they take no time of later histories.
func (h *history) disconnectAll(u disruption) (all []objectEdit) {
	h.begin(u)
	for _, s := range h.spaces {
		if s.cluster {
			all = append(all, *h.disconnect(s, false))
		}
	}
	return all
}
