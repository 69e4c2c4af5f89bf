package opensearchsync

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// withPassword returns a user whose password is in a Secret.
func withPassword(name, secret string) *opensearchv1.OpensearchUser {
	u := userNamed(name)
	u.Spec.PasswordFrom.Name, u.Spec.PasswordFrom.Key = secret, "key"
	return u
}

// apiServer holds the users at the API server.
type apiServer map[event.Key]event.Change

func (a apiServer) ReadNewest(_ context.Context, _ kinds.Kind, c event.Change) (event.Change, error) {
	now, found := a[c.Key]
	if !found {
		c.Deleted = true
		return c, nil
	}
	return now, nil
}

// withVerifier returns a reconciler of passwords that verifies users at an API server.
func (w *feededState) withVerifier(api apiServer, v *fakeSecrets) *reconciler {
	log := slog.New(slog.DiscardHandler)
	return &reconciler{state: w.state, secrets: secretValueReader{v}, verifier: verify.New(w.view, api, "local", log, prometheus.NewRegistry())}
}

// create stores a user at the API server, and returns the object that an informer holds of it.
func (a apiServer) create(w *feededState, user *opensearchv1.OpensearchUser) declaredObject {
	w.t.Helper()
	data, err := json.Marshal(user)
	if err != nil {
		w.t.Fatal(err)
	}
	c := event.Change{Key: w.key(user.Name), UID: string(user.UID), ResourceVersion: "1", Object: data}
	a[c.Key] = c
	return declaredObject{Change: c, kind: kinds.OpenSearchUsers(), value: user}
}

func TestSecretIsReadOnlyForVerifiedUser(t *testing.T) {
	w, v, api := newFeededState(t), newFakeSecrets(), apiServer{}
	r := w.withVerifier(api, v)
	v.put("one", map[string]string{"key": "cobalt"})
	to := &clusterConnection{key: func() ([]byte, error) { return []byte("key"), nil }}
	anna := api.create(w, withPassword("anna", "one"))
	for secret, want := range map[string]error{"one": nil, "two": reconcile.ErrStale} {
		api.create(w, withPassword("anna", secret))
		v.reads = map[string]int{}
		key := Key{clusterKey("local", "default", "search"), plan.Users}
		_, err := r.readChangedPasswords(t.Context(), controller.NewRequest(w.view, key, true), syncInput{objects: []declaredObject{anna}, to: to})
		if !errors.Is(err, want) || (v.reads["one"] == 0) != (want != nil) {
			t.Errorf("the API server names %s: got %v and reads %v, want %v", secret, err, v.reads, want)
		}
	}
}

func TestSecretsAreReadWhenChangedAndAtResync(t *testing.T) {
	w, v, api := newFeededState(t), newFakeSecrets(), apiServer{}
	r := w.withVerifier(api, v)
	to := &clusterConnection{key: func() ([]byte, error) { return []byte("key"), nil }}
	users := []declaredObject{api.create(w, withPassword("anna", "one")), api.create(w, withPassword("ben", "two")), api.create(w, withPassword("kim", "two"))}
	key := Key{clusterKey("local", "default", "search"), plan.Users}
	change := func(secret, value string) {
		v.put(secret, map[string]string{"key": value})
		is := v.secrets[secret]
		is.ResourceVersion = w.of(kinds.Secrets(), &metav1.PartialObjectMetadata{ObjectMeta: named(secret)}, false).ResourceVersion
		v.secrets[secret] = is
	}
	tagsOf := func() map[string]string {
		all := map[string]string{}
		for uid, tag := range to.tags {
			all[uid] = tag.text
		}
		return all
	}
	reads := func(what string, resync bool, want map[string]int) *runPasswords {
		t.Helper()
		v.reads = map[string]int{}
		known, err := r.readChangedPasswords(t.Context(), controller.NewRequest(w.view, key, resync), syncInput{objects: users, to: to})
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(v.reads, want) {
			t.Errorf("%s: read are %v, want %v", what, v.reads, want)
		}
		if len(known.tags) != len(users) {
			t.Errorf("%s: of %d users there are %d tags", what, len(users), len(known.tags))
		}
		return known
	}
	change("one", "cobalt")
	change("two", "umbra")
	reads("at first", false, map[string]int{"one": 1, "two": 1})
	first := tagsOf()
	reads("of nothing that has changed", false, map[string]int{})
	if !maps.Equal(tagsOf(), first) {
		t.Error("without a change there are other tags")
	}
	change("two", "quartz")
	reads("of what has changed", false, map[string]int{"two": 1})
	if now := tagsOf(); now["uid-anna"] != first["uid-anna"] || now["uid-ben"] == first["uid-ben"] || now["uid-kim"] == first["uid-kim"] {
		t.Errorf("the tags were %v, and are %v", first, now)
	}
	reads("of nothing more", false, map[string]int{})
	reads("in a resync", true, map[string]int{"one": 1, "two": 1})
	reads("after it", false, map[string]int{})

	v.put("one", map[string]string{"key": "lantern"}) // The informer does not have the change yet.
	reads("before the bus tells", false, map[string]int{})
	w.of(kinds.Secrets(), &metav1.PartialObjectMetadata{ObjectMeta: named("one")}, false)
	reads("once the bus tells", false, map[string]int{"one": 1})

	users[1] = api.create(w, withPassword("ben", "one"))
	reads("of another Secret", false, map[string]int{"one": 1})
	users = append(users, api.create(w, withPassword("lee", "three")))
	v.put("three", map[string]string{"key": "orbit"})
	for range 2 {
		reads("of one that is not followed", false, map[string]int{"three": 1})
	}
	w.of(kinds.Secrets(), &metav1.PartialObjectMetadata{ObjectMeta: named("three")}, false)
	reads("of one that is followed now", false, map[string]int{"three": 1})
	reads("of one that is followed", false, map[string]int{})
}

// A read may return a newer version of the Secret than the informer holds. The tag then counts for the version in the
// informer, so the next event causes another read.
func TestPasswordIsOfVersionInInformer(t *testing.T) {
	w, v, api := newFeededState(t), newFakeSecrets(), apiServer{}
	r := w.withVerifier(api, v)
	to := &clusterConnection{key: func() ([]byte, error) { return []byte("key"), nil }}
	tells := func() string {
		return w.of(kinds.Secrets(), &metav1.PartialObjectMetadata{ObjectMeta: named("one")}, false).ResourceVersion
	}
	tells()
	v.put("one", map[string]string{"key": "cobalt"})
	newer := v.secrets["one"]
	newer.ResourceVersion = "2"
	v.secrets["one"] = newer
	for range 2 {
		key := Key{clusterKey("local", "default", "search"), plan.Users}
		if _, err := r.readChangedPasswords(t.Context(), controller.NewRequest(w.view, key, false), syncInput{objects: []declaredObject{api.create(w, withPassword("anna", "one"))}, to: to}); err != nil {
			t.Fatal(err)
		}
		if v.reads["one"] == 1 && tells() != "2" {
			t.Fatal("the bus tells of another state")
		}
	}
	if v.reads["one"] != 2 {
		t.Errorf("it was read %d times", v.reads["one"])
	}
}

// Passwords are valid only for the references that users had when they were read.
func TestPasswordsRequirePresentReferences(t *testing.T) {
	of := func(users ...*opensearchv1.OpensearchUser) (all []declaredObject) {
		for _, u := range users {
			all = append(all, declaredObject{value: u})
		}
		return all
	}
	anna, ben := withPassword("anna", "one"), withPassword("ben", "two")
	leaving := withPassword("ben", "three")
	leaving.DeletionTimestamp = &metav1.Time{}
	hindered := of(withPassword("ben", "three"))
	hindered[0].obstacle = recordTooLargeVerdict()
	known := newRunPasswords()
	for _, user := range []*opensearchv1.OpensearchUser{anna, ben} {
		known.of[string(user.UID)] = user.Spec.PasswordFrom
	}
	for name, c := range map[string]struct {
		objects []declaredObject
		want    bool
	}{
		"as they were":                  {of(anna, ben), true},
		"one of them is gone":           {of(anna), true},
		"one is of another Secret now":  {of(anna, withPassword("ben", "one")), false},
		"one has come":                  {of(anna, ben, withPassword("kim", "one")), false},
		"one that leaves needs none":    {of(anna, leaving), true},
		"nor does one that is hindered": {append(of(anna), hindered...), true},
	} {
		t.Run(name, func(t *testing.T) {
			if known.coversObjects(c.objects) != c.want {
				t.Errorf("they are those of the users: %t", !c.want)
			}
		})
	}
}
