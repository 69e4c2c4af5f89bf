package secrets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// followed returns users of both groups, and the Secrets of two namespaces.
func followed() []kinds.Kind {
	return append(SecretKinds([]string{"a", "b"}), kinds.OpenSearchUsers(), kinds.ToLegacyOpenSearchKind(kinds.OpenSearchUsers()), kinds.Stores())
}

func user(kind kinds.Kind, namespace, name, secret string) source.Object {
	key := event.Key{Cluster: "local", GroupResource: kind.GroupResource, Namespace: namespace, Name: name}
	return source.Object{Change: event.Change{Key: key, Object: fmt.Appendf(nil, `{"spec":{"passwordFrom":{"name":%q}}}`, secret)}}
}

// allTurned takes the changed names of both namespaces.
func (r *secretReferences) allTurned() (all []string) {
	for _, namespace := range []string{"a", "b"} {
		for _, name := range r.takeChangedNames(namespace) {
			named, _ := r.referenceState(namespace, name)
			all = append(all, fmt.Sprintf("%s/%s %v", namespace, name, named))
		}
	}
	slices.Sort(all)
	return all
}

func TestReferencesNameSecretWhileAnyObjectDoes(t *testing.T) {
	users, legacy := kinds.OpenSearchUsers(), kinds.ToLegacyOpenSearchKind(kinds.OpenSearchUsers())
	r := newSecretReferences(followed(), slog.New(slog.DiscardHandler))
	deleted := user(users, "a", "anna", "s")
	deleted.Deleted = true
	for _, step := range []struct {
		what string
		kind kinds.Kind
		o    source.Object
		want []string
	}{
		{"one names it", users, user(users, "a", "anna", "s"), []string{"a/s true"}},
		{"it does so once more", users, user(users, "a", "anna", "s"), nil},
		{"another of the name in the other group does, too", legacy, user(legacy, "a", "anna", "s"), nil},
		{"another of the name elsewhere names another", users, user(users, "b", "anna", "s"), []string{"b/s true"}},
		{"one where nobody looks", users, user(users, "c", "anna", "s"), nil},
		{"the first names another", users, user(users, "a", "anna", "t"), []string{"a/t true"}},
		{"the other names none", legacy, user(legacy, "a", "anna", ""), []string{"a/s false"}},
		{"what is no name", legacy, user(legacy, "a", "anna", "x,metadata.namespace=kube-system"), nil},
		{"what is a path", legacy, user(legacy, "a", "anna", "../s"), nil},
		{"it goes", users, deleted, []string{"a/t false"}},
		{"it goes again", users, deleted, nil},
	} {
		r.mu.Lock()
		r.recordObjectReferences(step.kind, step.o)
		r.mu.Unlock()
		if got := r.allTurned(); !slices.Equal(got, step.want) {
			t.Errorf("%s: turned are %v, want %v", step.what, got, step.want)
		}
	}
	if len(r.by) != 1 || len(r.names["a"].count) != 0 {
		t.Errorf("left are %v and %v", r.by, r.names["a"].count)
	}
}

func TestRecordListPageReplacesReferences(t *testing.T) {
	users, legacy := kinds.OpenSearchUsers(), kinds.ToLegacyOpenSearchKind(kinds.OpenSearchUsers())
	r := newSecretReferences(followed(), slog.New(slog.DiscardHandler))
	known := func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		select {
		case <-r.listed:
			return r.waitUntilListed(t.Context()) == nil
		default:
			return r.waitUntilListed(ctx) == nil
		}
	}
	anna, ben, old := user(users, "a", "anna", "s"), user(users, "a", "ben", "t"), user(legacy, "b", "kim", "u")
	for _, step := range []struct {
		what  string
		kind  kinds.Kind
		token string
		page  source.Page
		err   error
		known bool
		want  []string
	}{
		{"a first page", users, "", source.Page{Objects: []source.Object{anna}, Next: "2"}, nil, false, []string{"a/s true"}},
		{"its second fails", users, "2", source.Page{}, errors.New("no"), false, nil},
		{"another kind", kinds.Stores(), "", source.Page{}, nil, false, nil},
		{"the first once more", users, "", source.Page{Objects: []source.Object{anna}, Next: "2"}, nil, false, nil},
		{"its second", users, "2", source.Page{Objects: []source.Object{ben}}, nil, false, []string{"a/t true"}},
		{"the older kind", legacy, "", source.Page{Objects: []source.Object{old}}, nil, true, []string{"b/u true"}},
		{"one is gone", users, "", source.Page{Objects: []source.Object{ben}}, nil, true, []string{"a/s false"}},
		{"a list that fails says nothing", users, "", source.Page{}, errors.New("no"), true, nil},
		{"the older kind is not served any more", legacy, "", source.Page{}, source.ErrNotServed, true, []string{"b/u false"}},
	} {
		r.recordListPage(step.kind, step.token, step.page, step.err)
		if got := r.allTurned(); !slices.Equal(got, step.want) || known() != step.known {
			t.Errorf("%s: turned are %v, want %v; all known: %v", step.what, got, step.want, known())
		}
	}
}

func TestReferencesWithoutNamingKindsAreEmpty(t *testing.T) {
	if err := newSecretReferences(SecretKinds([]string{"a"}), slog.New(slog.DiscardHandler)).waitUntilListed(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReferencesAreBoundedPerNamespace(t *testing.T) {
	users := kinds.OpenSearchUsers()
	r := newSecretReferences(followed(), slog.New(slog.DiscardHandler))
	note := func(namespace, name, secret string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.recordObjectReferences(users, user(users, namespace, name, secret))
	}
	for i := range maxNamed + 5 {
		note("a", fmt.Sprint("u-", i), fmt.Sprint("s-", i))
	}
	if n := len(r.takeChangedNames("a")); n != maxNamed {
		t.Errorf("%d are named, want %d", n, maxNamed)
	}
	note("a", "more", "s-0")
	note("b", "other", "s")
	note("a", "u-0", "")
	note("a", "more", "") // One more fits now.
	note("a", "late", "late")
	if got, want := r.allTurned(), []string{"a/late true", "a/s-0 false", "b/s true"}; !slices.Equal(got, want) {
		t.Errorf("turned are %v, want %v", got, want)
	}
	for i := range maxNamed + 5 {
		note("a", fmt.Sprint("u-", i), "")
	}
	if note("a", "late", ""); len(r.names["a"].count) != 0 {
		t.Errorf("%d are counted of what nobody names", len(r.names["a"].count))
	}
}

func TestPutBackChangedNamesKeepsNames(t *testing.T) {
	users := kinds.OpenSearchUsers()
	r := newSecretReferences(followed(), slog.New(slog.DiscardHandler))
	r.recordListPage(users, "", source.Page{Objects: []source.Object{user(users, "a", "anna", "s")}}, nil)
	<-r.changedNamesChannel("a")
	r.putBackChangedNames("a", r.takeChangedNames("a"))
	<-r.changedNamesChannel("a")
	if got := r.allTurned(); !slices.Equal(got, []string{"a/s true"}) {
		t.Errorf("turned are %v", got)
	}
}
