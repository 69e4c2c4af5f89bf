package opensearchsync

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// withPassword returns a user whose password is in a Secret.
func withPassword(name, secret string) *opensearchv1.OpensearchUser {
	u := userNamed(name)
	u.Spec.PasswordFrom.Name, u.Spec.PasswordFrom.Key = secret, "key"
	return u
}

func TestSecretsAreReadThatTheBusSaysHaveChangedAndInAResyncAll(t *testing.T) {
	w, v := newTold(t), newVault()
	r := &reconciler{state: w.state, secrets: secrets{v}}
	to := &connection{key: func() ([]byte, error) { return []byte("key"), nil }}
	users := []object{{value: withPassword("anna", "one")}, {value: withPassword("ben", "two")}, {value: withPassword("kim", "two")}}
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
	reads := func(what string, resync bool, want map[string]int) *passwords {
		t.Helper()
		v.reads = map[string]int{}
		known, err := r.readPasswords(t.Context(), controller.NewPass(w.view, key, resync), syncInput{objects: users, to: to})
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

	v.put("one", map[string]string{"key": "lantern"}) // The view does not have the change yet.
	reads("before the bus tells", false, map[string]int{})
	w.of(kinds.Secrets(), &metav1.PartialObjectMetadata{ObjectMeta: named("one")}, false)
	reads("once the bus tells", false, map[string]int{"one": 1})

	users[1] = object{value: withPassword("ben", "one")}
	reads("of another Secret", false, map[string]int{"one": 1})
	users = append(users, object{value: withPassword("lee", "three")})
	v.put("three", map[string]string{"key": "orbit"})
	for range 2 {
		reads("of one that is not followed", false, map[string]int{"three": 1})
	}
	w.of(kinds.Secrets(), &metav1.PartialObjectMetadata{ObjectMeta: named("three")}, false)
	reads("of one that is followed now", false, map[string]int{"three": 1})
	reads("of one that is followed", false, map[string]int{})
}

// A read may return a newer version of the Secret than the view holds. The tag then counts for the version in the view,
// so the next event causes another read.
func TestAPasswordIsOfTheStateThatTheBusHadToldOf(t *testing.T) {
	w, v := newTold(t), newVault()
	r := &reconciler{state: w.state, secrets: secrets{v}}
	to := &connection{key: func() ([]byte, error) { return []byte("key"), nil }}
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
		if _, err := r.readPasswords(t.Context(), controller.NewPass(w.view, key, false), syncInput{objects: []object{{value: withPassword("anna", "one")}}, to: to}); err != nil {
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
func TestPasswordsAreOfUsersAsTheyAre(t *testing.T) {
	of := func(users ...*opensearchv1.OpensearchUser) (all []object) {
		for _, u := range users {
			all = append(all, object{value: u})
		}
		return all
	}
	anna, ben := withPassword("anna", "one"), withPassword("ben", "two")
	leaving := withPassword("ben", "three")
	leaving.DeletionTimestamp = &metav1.Time{}
	hindered := of(withPassword("ben", "three"))
	hindered[0].obstacle = recordTooLarge()
	known := newPasswords()
	known.of = passwordReferences(stayingUsers(of(anna, ben)))
	for name, c := range map[string]struct {
		objects []object
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
			if known.matchesObjects(c.objects) != c.want {
				t.Errorf("they are those of the users: %t", !c.want)
			}
		})
	}
}
