package webhook

import (
	"fmt"
	"log/slog"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// TestReloadRefusesQueries verifies that no query gets an index during a reload. A query that already
// holds the old index keeps it.
func TestReloadRefusesQueries(t *testing.T) {
	s := newIndexState(informer.Config{Cluster: "local", Log: slog.New(slog.DiscardHandler)}, false)
	tell := func(name, user string) {
		t.Helper()
		k := event.Key{Cluster: "local", GroupResource: kinds.PolicyBindings().GroupResource, Namespace: "n", Name: name}
		body := fmt.Sprintf(`{"metadata":{"namespace":"n","name":%q,"uid":%q},"spec":{"roleRef":{"name":"viewer"},`+
			`"subjects":[{"kind":"User","name":%q,"uid":"u"}],"resourceSelector":{"resourceKind":{"apiGroup":"a","kind":"Tree"}}}}`, name, name, user)
		c := event.Change{Key: k, UID: name, ResourceVersion: "1", Epoch: "e", Object: []byte(body)}
		if err := s.view.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	// Only NATS fills the tables, so the test sets the other kinds itself.
	declare := func(x *authz.Index) {
		p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "trees"}}
		p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = "a", "Tree", "trees", []string{"get"}
		x.SetProtectedResource("trees", p)
		x.SetRole("n", "viewer", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"a/trees.get"}}})
		for _, user := range []string{"ann", "ben"} {
			x.SetUser(user, &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: user, UID: "u"}})
		}
	}
	may := func(when, user string, want bool) {
		t.Helper()
		q := authz.Query{Subject: authz.Subject{User: user}, Permission: "a/trees.get", Type: "a/Tree", Name: "oak"}
		if _, allowed, err := s.Decide(t.Context(), q); err != nil || allowed != want {
			t.Errorf("%s user %s: got allowed %v, %v", when, user, allowed, err)
		}
	}
	nobody := func(when string) {
		t.Helper()
		if _, allowed, err := s.Decide(t.Context(), authz.Query{}); !fault.IsUnavailable(err) || allowed {
			t.Errorf("%s got %v, %v, want Unavailable", when, allowed, err)
		}
	}
	load := func(user string) {
		t.Helper()
		s.startNewIndex()
		declare(s.made)
		nobody("before anything was read")
		tell("of-"+user, user)
		nobody("before all was read")
		s.fillAndPublishIndex()
	}
	nobody("at the start")
	load("ann")
	may("once all was read,", "ann", true)
	may("once all was read,", "ben", false)
	before, err := s.currentIndex()
	if err != nil {
		t.Fatal(err)
	}
	load("ben")
	may("after a reload,", "ben", true)
	may("after a reload,", "ann", false)
	if now, err := s.currentIndex(); err != nil || now == before {
		t.Errorf("the index was not replaced: %v", err)
	}
}
