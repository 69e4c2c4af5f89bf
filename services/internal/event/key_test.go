package event_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/event"
)

func TestSubjectTokensAreUniquePerKey(t *testing.T) {
	t.Parallel()
	stores := event.GroupResource{Group: "core.platform-mesh.io", Resource: "stores"}
	for name, test := range map[string]struct {
		key  event.Key
		want string
	}{
		"cluster-scoped":    {event.Key{Cluster: "local", GroupResource: stores, Name: "demo"}, "local.core%2Eplatform-mesh%2Eio.stores._.demo"},
		"core group":        {event.Key{Cluster: "c", GroupResource: event.GroupResource{Resource: "secrets"}, Namespace: "ns", Name: "s"}, "c._.secrets.ns.s"},
		"dots in the name":  {event.Key{Cluster: "c", GroupResource: stores, Name: "a.b"}, "c.core%2Eplatform-mesh%2Eio.stores._.a%2Eb"},
		"wildcards":         {event.Key{Cluster: "c", GroupResource: stores, Name: "a*>"}, "c.core%2Eplatform-mesh%2Eio.stores._.a%2A%3E"},
		"a name that is _":  {event.Key{Cluster: "c", GroupResource: stores, Namespace: "_", Name: "_"}, "c.core%2Eplatform-mesh%2Eio.stores.%5F.%5F"},
		"colon and percent": {event.Key{Cluster: "c", GroupResource: stores, Name: "system:a%2E"}, "c.core%2Eplatform-mesh%2Eio.stores._.system:a%252E"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.key.SubjectTokens(); got != test.want {
				t.Errorf("tokens = %q, want %q", got, test.want)
			}
			if got, err := event.ParseSubjectTokens(test.want); err != nil || got != test.key {
				t.Errorf("parsed %v, %v; want %v", got, err, test.key)
			}
		})
	}
}

func TestParseSubjectTokensRefusesForeignForms(t *testing.T) {
	t.Parallel()
	for name, tail := range map[string]string{
		"too few tokens":        "c.g.stores.demo",
		"too many tokens":       "c.g.stores._.a.b",
		"empty token":           "c.g.stores..demo",
		"no name":               "c.g.stores._._",
		"no cluster":            "_.g.stores._.a",
		"cut escape":            "c.g.stores._.a%2",
		"lower-case escape":     "c.g.stores._.a%2e",
		"needless escape":       "c.g.stores._.%61",
		"character not escaped": "c.g.stores._.a b",
		"nothing":               "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if k, err := event.ParseSubjectTokens(tail); err == nil {
				t.Errorf("%q was read as %v", tail, k)
			}
		})
	}
}

// Every key has one encoding, every encoding belongs to one key, and no encoding is longer than NATS allows.
func FuzzTokensRoundTrip(f *testing.F) {
	f.Add("local", "core.platform-mesh.io", "stores", "", "demo")
	f.Add("c", "", "secrets", "_", "a.b*>%\x00 é")
	f.Fuzz(func(t *testing.T, cluster, group, resource, namespace, name string) {
		k := event.Key{Cluster: cluster, GroupResource: event.GroupResource{Group: group, Resource: resource}, Namespace: namespace, Name: name}
		tail := k.SubjectTokens()
		if strings.ContainsAny(tail, " *>\t\r\n") || strings.Count(tail, ".") != 4 {
			t.Fatalf("tokens %q are no subject", tail)
		}
		got, err := event.ParseSubjectTokens(tail)
		if cluster == "" || resource == "" || name == "" {
			if err == nil {
				t.Fatalf("incomplete key %#v was accepted", k)
			}
			return
		}
		if err != nil || got != k {
			t.Fatalf("round trip of %#v: %#v, %v", k, got, err)
		}
	})
}

func FuzzParseTokensInvertsSubjectTokens(f *testing.F) {
	f.Add("c.g.stores._.demo")
	f.Add("c._.secrets.%5F.a%2Eb")
	f.Fuzz(func(t *testing.T, tail string) {
		if k, err := event.ParseSubjectTokens(tail); err == nil && k.SubjectTokens() != tail {
			t.Fatalf("%q and %q are one object", tail, k.SubjectTokens())
		}
	})
}

func ExampleKey_SubjectTokens() {
	k := event.Key{Cluster: "local", GroupResource: event.GroupResource{Resource: "configmaps"}, Namespace: "team-a", Name: "app.config"}
	fmt.Println(k.SubjectTokens())
	// Output: local._.configmaps.team-a.app%2Econfig
}
