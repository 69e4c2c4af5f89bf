//go:build integration

package opensearchsync_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// anyPassword is the content of a user as long as no login was tried.
const anyPassword = "any password"

// mappings is the path prefix of the entries of role mappings, as in "rolesmapping/ROLE/users/VALUE".
const mappings = "rolesmapping/"

// declaredPointer is one object of a history.
type declaredPointer struct {
	// id is NAMESPACE/KIND/NAME, where KIND is a kind of the security API. The kind of bindings is "rolesmapping".
	id    string
	space *historyNamespace
	// now maps the paths that the object asks for to their content. It is empty for a deleted object.
	now map[string]string
	// before holds earlier declarations that may still be in OpenSearch.
	before []map[string]string
	// key is the key of the password of a user.
	key             string
	adopts, deleted bool
}

// declare replaces the declaration of the object.
func (d *declaredPointer) declare(now map[string]string) {
	d.before = append(d.before, d.now)
	d.now = now
}

// contents returns the contents of a path that the object declares or declared.
func (d *declaredPointer) contents(path string) (all []string) {
	for _, declaration := range append(d.before, d.now) {
		if content, ok := declaration[path]; ok {
			all = append(all, content)
		}
	}
	return all
}

// documentLock returns the path of the document that holds a path: all entries of a mapping are in one.
func documentLock(path string) string {
	kind, rest, _ := strings.Cut(path, "/")
	name, _, _ := strings.Cut(rest, "/")
	return kind + "/" + name
}

// mentions reports whether the object declares, or declared, anything in the document of a path.
func (d *declaredPointer) mentions(path string) bool {
	return slices.ContainsFunc(append(d.before, d.now), func(declaration map[string]string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(declaration)), func(p string) bool { return documentLock(p) == documentLock(path) })
	})
}

// historyNamespace is a namespace with one cluster object. All clusters lead to the same OpenSearch.
type historyNamespace struct {
	name string
	// exists means that the namespace exists. deleted means that its deletion has begun.
	exists, deleted bool
	// cluster and secret mean that the cluster object and its connection Secret exist.
	cluster, secret bool
	// memory means that the running service has an open connection.
	memory    bool
	passwords map[string]string // By key of the Secret.
}

// connected reports whether the cluster of the namespace can be reached.
func (s *historyNamespace) connected() bool { return s.exists && !s.deleted && s.cluster && s.secret }

// removes reports whether the service can remove from OpenSearch what deleted objects of the namespace have there.
func (s *historyNamespace) removes() bool {
	return s.connected() || !s.cluster && (s.memory || s.secret)
}

// observedContent holds the present objects and OpenSearch, as far as they belong to one history.
type observedContent struct {
	present map[string]bool   // By id of an object, or by name of a namespace.
	status  map[string]string // By id of an object, for messages.
	content map[string]string // By path.
}

// expectedContent predicts what OpenSearch holds at rest. It follows docs/opensearch.md and has no code of the service.
type expectedContent struct {
	spaces  []*historyNamespace
	objects map[string]*declaredPointer
	// foreign holds, by path, what other clients wrote and no object has adopted.
	foreign map[string]string
	// stale holds entries that an object has dropped. They stay while OpenSearch permits no edit of their mapping.
	stale map[string]*historyNamespace
	// edited holds the mappings that another client has edited. They may be empty.
	edited map[string]bool
}

// drop marks all entries of an object as stale, before the object declares something else.
func (r *expectedContent) drop(d *declaredPointer) {
	for _, m := range append(d.before, d.now) {
		for path := range m {
			if strings.HasPrefix(path, mappings) {
				r.stale[path] = d.space
			}
		}
	}
}

// list returns the objects in the order of their ids.
func (r *expectedContent) list() (all []*declaredPointer) {
	for _, id := range slices.Sorted(maps.Keys(r.objects)) {
		all = append(all, r.objects[id])
	}
	return all
}

// owned reports whether an object has made the path: a live object of a reachable cluster declares it, and no other
// client wrote it before.
func (r *expectedContent) owned(path string) bool {
	_, foreign := r.foreign[path]
	return !foreign && slices.ContainsFunc(r.list(), func(d *declaredPointer) bool {
		_, ok := d.now[path]
		return ok && d.space.connected()
	})
}

// mentioned reports whether an object declares a path, or did so before.
func (r *expectedContent) mentioned(path string) bool {
	return slices.ContainsFunc(r.list(), func(d *declaredPointer) bool { return len(d.contents(path)) > 0 })
}

// adopt removes the entities that objects with the annotation take over from the foreign ones.
func (r *expectedContent) adopt() {
	for path := range r.foreign {
		if !strings.HasPrefix(path, mappings) && slices.ContainsFunc(r.list(), func(d *declaredPointer) bool {
			_, ok := d.now[path]
			return ok && d.adopts && d.space.connected()
		}) {
			delete(r.foreign, path)
		}
	}
}

// roleOf returns the path of the role that a mapping's entry belongs to.
func roleOf(entry string) string {
	return strings.Replace(documentLock(entry), mappings, "roles/", 1)
}

// blocked reports whether OpenSearch permits no edit of the mapping of an entry: the role does not exist, and the
// mapping has entries of other clients.
func (r *expectedContent) blocked(entry string, o observedContent) bool {
	_, exists := o.content[roleOf(entry)]
	return strings.HasPrefix(entry, mappings) && !exists && slices.ContainsFunc(slices.Collect(maps.Keys(r.foreign)), func(path string) bool {
		return strings.HasPrefix(path, mappings) && roleOf(path) == roleOf(entry)
	})
}

// check returns an error unless OpenSearch holds what the objects and other clients declare, and nothing else.
func (r *expectedContent) check(o observedContent) error {
	r.adopt()
	for _, s := range r.spaces {
		if s.deleted && o.present[s.name] {
			return fmt.Errorf("namespace %s still exists", s.name)
		}
	}
	for path, content := range r.foreign {
		if got, ok := o.content[path]; !ok || got != content && got != anyPassword {
			return fmt.Errorf("another client wrote %s %q; got %q", path, content, got)
		}
	}
	for _, d := range r.list() {
		if err := r.complete(d, o); err != nil {
			return err
		}
	}
	for path, content := range o.content {
		if !r.explained(path, content, o) {
			return fmt.Errorf("neither an object nor another client declares %s %q", path, content)
		}
	}
	return nil
}

// complete returns an error unless a deleted object is gone, and a live object has what it declares.
func (r *expectedContent) complete(d *declaredPointer, o observedContent) error {
	switch {
	case d.deleted && o.present[d.id] && d.space.removes():
		return fmt.Errorf("the deleted object %s still exists: %s", d.id, o.status[d.id])
	case !d.deleted && !o.present[d.id]:
		return fmt.Errorf("object %s does not exist", d.id)
	case !d.space.connected():
		return nil
	}
	for path := range d.now {
		_, exists := o.content[path]
		_, hasRole := o.content[roleOf(path)]
		if !exists && (hasRole || !strings.HasPrefix(path, mappings)) {
			return fmt.Errorf("object %s declares %s; it does not exist: %s", d.id, path, o.status[d.id])
		}
	}
	return nil
}

// explained reports whether a present object, or another client, declares the content of a path.
func (r *expectedContent) explained(path, content string, o observedContent) bool {
	if _, ok := r.foreign[path]; ok || r.edited[path] {
		return true // The content was compared.
	}
	if s, ok := r.stale[path]; ok && (r.blocked(path, o) || !s.removes()) {
		return true
	}
	return slices.ContainsFunc(r.list(), func(d *declaredPointer) bool {
		all := d.contents(path)
		return o.present[d.id] && (slices.Contains(all, content) || content == anyPassword && len(all) > 0)
	})
}

// forgetOld forgets earlier declarations, deleted objects, and stale entries that are gone. Call it after a check has passed.
func (r *expectedContent) forgetOld(o observedContent) {
	for path, s := range r.stale {
		if !r.blocked(path, o) && s.removes() {
			delete(r.stale, path)
		}
	}
	for id, d := range r.objects {
		switch {
		case d.deleted && !o.present[id]:
			delete(r.objects, id)
		case !d.deleted && d.space.connected():
			d.before = nil
		}
	}
	for _, s := range r.spaces {
		switch {
		case s.deleted:
			*s = historyNamespace{name: s.name, memory: s.memory, passwords: s.passwords}
		case s.cluster:
			s.memory = s.secret
		}
	}
}
