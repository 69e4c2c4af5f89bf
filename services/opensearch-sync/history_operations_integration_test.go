//go:build integration

package opensearchsync_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// deleted records the deletion of an object in the reference.
func (h *history) deleted(d *declaredPointer) {
	h.drop(d)
	d.declare(nil)
	d.deleted = true
}

// randomSpec returns a random spec and what it declares. key is the key of the password of a user.
func (h *history) randomSpec(s *historyNamespace, apiKind, id string) (spec map[string]any, now map[string]string, key string) {
	if apiKind == "rolesmapping" {
		spec, now = h.randomBinding()
		return spec, now, ""
	}
	name, content := h.prefix+apiKind[:1]+pick(h, "0", "1"), h.content(apiKind) // No role has the name of an action group.
	if d := h.objects[id]; d != nil {                                           // The name of an object does not change.
		_, name, _ = strings.Cut(slices.Collect(maps.Keys(d.now))[0], "/")
	}
	spec = map[string]any{"opensearchCluster": map[string]any{"name": cluster}, "name": name}
	switch apiKind {
	case "internalusers":
		key = pick(h, "x", "y")
		content = s.passwords[key]
		spec["passwordFrom"] = map[string]any{"name": "passwords", "key": key}
	case "roles":
		spec["clusterPermissions"] = []any{content}
	case "tenants":
		spec["description"] = content
	case "actiongroups":
		spec["allowedActions"] = []any{content}
	}
	return spec, map[string]string{apiKind + "/" + name: content}, key
}

// randomBinding returns a random spec of a binding, and the entries that it declares.
func (h *history) randomBinding() (spec map[string]any, now map[string]string) {
	users, backendRoles, hosts := subset(h, h.prefix+"i0", h.prefix+"i1", "kim"), subset(h, "staff"), subset(h, "10.0.0.1")
	if len(users)+len(backendRoles)+len(hosts) == 0 {
		users = []any{"kim"}
	}
	roles := append(subset(h, h.prefix+"r0", h.prefix+"r1"), h.prefix+"r2")
	now = map[string]string{}
	for _, role := range roles {
		for field, values := range map[string][]any{"users": users, "backend_roles": backendRoles, "hosts": hosts} {
			for _, v := range values {
				now[fmt.Sprintf("%s%s/%s/%s", mappings, role, field, v)] = ""
			}
		}
	}
	return map[string]any{
		"opensearchCluster": map[string]any{"name": cluster}, "roles": roles, "users": users, "backendRoles": backendRoles, "hosts": hosts,
	}, now
}

// content returns one of a few contents of an entity, so that objects and other clients can have the same.
func (h *history) content(apiKind string) string {
	if apiKind == "internalusers" {
		return newPassword(h.random)
	}
	return map[string][]string{
		"roles": {"cluster_monitor", "cluster_composite_ops"}, "tenants": {"red", "blue"}, "actiongroups": {"read", "write"},
	}[apiKind][h.random.IntN(2)]
}

// apply creates or edits an object.
func (h *history) apply(s *historyNamespace, apiKind, id string) *objectEdit {
	d, exists := h.objects[id]
	if exists && d.deleted {
		return nil
	}
	spec, now, key := h.randomSpec(s, apiKind, id)
	if !exists {
		d = &declaredPointer{id: id, space: s, adopts: apiKind != "rolesmapping" && h.random.IntN(5) == 0}
	}
	if !h.claim(d, now) {
		return nil
	}
	h.drop(d)
	d.declare(now)
	d.key, h.objects[id] = key, d
	adopts := d.adopts
	return &objectEdit{fmt.Sprintf("apply %s %v, adopts: %v", id, spec, adopts), func(t *executor) error { return t.apply(id, spec, adopts, exists) }}
}

// remove deletes an object.
func (h *history) remove(d *declaredPointer) *objectEdit {
	if d.deleted || !h.claim(d, nil) {
		return nil
	}
	h.deleted(d)
	return &objectEdit{"delete " + d.id, func(t *executor) error { return t.remove(d.id) }}
}

// replace deletes an object, by force or not, and creates it again in most cases. Without force it waits for the service.
func (h *history) replace(d *declaredPointer, force bool) *objectEdit {
	if d.deleted || !force && (h.disruption == restart || h.disruption == outage) || !h.needConnection(d.space) {
		return nil
	}
	apiKind := strings.Split(d.id, "/")[1]
	spec, now, key := h.randomSpec(d.space, apiKind, "")
	if !h.claim(d, now) {
		return nil
	}
	h.drop(d)
	id, text := d.id, "replace "+d.id
	if force {
		text = "delete by force " + d.id
	}
	creates := !force || h.random.IntN(2) == 0
	if delete(h.objects, id); creates {
		h.objects[id] = &declaredPointer{id: id, space: d.space, now: now, key: key}
		text = fmt.Sprintf("%s, and create it %v", text, spec)
	}
	return &objectEdit{text, func(t *executor) error {
		err := t.remove(id)
		if force {
			err = errors.Join(err, t.strip(id))
		}
		if creates {
			err = errors.Join(err, t.apply(id, spec, false, false))
		}
		return err
	}}
}

// connection creates, replaces or deletes the cluster object or the connection Secret.
func (h *history) connection(s *historyNamespace, secret bool) *objectEdit {
	if h.used[s] {
		return nil
	}
	h.changed[s] = true
	switch {
	case secret && s.secret:
		return h.disconnect(s, true)
	case !s.secret:
		s.secret = true
		return &objectEdit{"create Secret " + s.name + "/connection", func(t *executor) error { return t.connectionSecret(s.name) }}
	case !s.cluster:
		s.cluster = true
		return &objectEdit{"create cluster " + s.name + "/search", func(t *executor) error { return t.cluster(s.name, true) }}
	case h.random.IntN(2) == 0:
		return &objectEdit{"replace cluster " + s.name + "/search", func(t *executor) error {
			return errors.Join(t.cluster(s.name, false), t.cluster(s.name, true))
		}}
	}
	return h.disconnect(s, false)
}

// disconnect deletes the connection Secret or the cluster object.
func (h *history) disconnect(s *historyNamespace, secret bool) *objectEdit {
	h.changed[s] = true
	if secret {
		s.secret = false
		return &objectEdit{"delete Secret " + s.name + "/connection", func(t *executor) error {
			t.Delete(kinds.Secrets().InNamespace(s.name), "connection")
			return nil
		}}
	}
	s.cluster = false
	return &objectEdit{"delete cluster " + s.name + "/search", func(t *executor) error { return t.cluster(s.name, false) }}
}

// foreignEdit returns an edit of another client in OpenSearch.
func (h *history) foreignEdit() *objectEdit {
	if h.random.IntN(2) == 0 {
		return h.foreignEntryEdit()
	}
	apiKind := pick(h, "internalusers", "roles", "roles", "tenants", "actiongroups")
	path := apiKind + "/" + h.prefix + apiKind[:1] + pick(h, "0", "1", "2")
	if !h.claimForeign(path) {
		return nil
	}
	_, foreign := h.foreign[path]
	owned, content := h.owned(path), h.content(apiKind)
	if (foreign || owned) && h.random.IntN(2) == 0 {
		delete(h.foreign, path)
		return &objectEdit{"another client deletes " + path, func(t *executor) error { return t.send(http.MethodDelete, path, nil) }}
	}
	if !owned || apiKind == "internalusers" { // The service repairs other kinds.
		h.foreign[path] = content
	}
	return &objectEdit{fmt.Sprintf("another client writes %s: %s", path, content), func(t *executor) error { return t.write(path, content) }}
}

// claimForeign marks a path as touched by another client. It returns false if that is not possible in this step. If
// objects declare the path, their clusters must be reachable.
func (h *history) claimForeign(path string) bool {
	paths := map[string]string{path: ""}
	if !h.free(paths, h.objectsTouched) || !h.free(paths, h.foreignTouched) {
		return false
	}
	for _, d := range h.list() {
		if d.mentions(path) && (d.deleted || !h.needConnection(d.space)) {
			return false
		}
	}
	h.foreignTouched[documentLock(path)] = true
	return true
}

// foreignEntryEdit adds an entry to a mapping, or removes one. OpenSearch permits that only while the role exists.
func (h *history) foreignEntryEdit() *objectEdit {
	role := h.prefix + pick(h, "r0", "r1", "r2")
	entry := mappings + role + "/" + pick(h, "users/kim", "users/lee", "users/"+h.prefix+"i0", "backend_roles/staff", "hosts/10.0.0.1")
	_, foreign := h.foreign["roles/"+role]
	if !foreign && !h.owned("roles/"+role) || !h.claimForeign("roles/"+role) || !h.claimForeign(entry) {
		return nil
	}
	h.edited[mappings+role] = true
	_, has := h.foreign[entry]
	switch owned := h.owned(entry); {
	case (has || owned) && h.random.IntN(3) == 0:
		delete(h.foreign, entry)
		return &objectEdit{"another client removes " + entry, func(t *executor) error { return t.entry(entry, false) }}
	case has || owned || h.mentioned(entry):
		return nil
	}
	h.foreign[entry] = ""
	return &objectEdit{"another client adds " + entry, func(t *executor) error { return t.entry(entry, true) }}
}
