package impliedrole

import (
	"context"
	"errors"
	"iter"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

// truth is an API server that has one RoleBinding and one rule.
type truth struct {
	cluster
	binding, rule event.Change
}

func (a truth) Get(context.Context, kinds.Kind, string, string) (event.Change, error) {
	return a.binding, nil
}

func (a truth) List(context.Context, kinds.Kind, string) iter.Seq2[event.Change, error] {
	return func(yield func(event.Change, error) bool) { yield(a.rule, nil) }
}

func (a truth) Newest(context.Context, kinds.Kind, event.Change) (event.Change, error) {
	return a.binding, nil
}

func TestWhatAPlanWasMadeFromIsConfirmedNotWhatTheViewHoldsSince(t *testing.T) {
	w := newTracked(t)
	bound := func(user string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "a"}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}}}
	}
	w.apply(w.next("B", bound("mallory")))
	forged := w.state.Binding("ns", "B")
	is := w.next("B", bound("u"))
	w.apply(is)
	rule := event.Change{
		Key: event.Key{Cluster: "local", GroupResource: kinds.ImpliedRoles().GroupResource, Namespace: "ns", Name: "r"},
		UID: "uid-r", ResourceVersion: "1", Generation: 1, Object: []byte(`{"metadata":{"namespace":"ns","name":"r","uid":"uid-r"}}`),
	}
	w.apply(rule)
	a := &applier{state: w.state, view: w.view, kube: truth{binding: is, rule: rule}}
	for name, c := range map[string]struct {
		source *infer.Binding
		want   error
	}{
		"as it is":      {w.state.Binding("ns", "B"), nil},
		"as was forged": {forged, reconcile.ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			action := infer.Action{Verb: infer.Create, Name: "B-b", Source: "B", Subjects: c.source.Subjects}
			n := newMemory(w.state).of("ns")
			rules, _ := w.state.RuleSet("ns")
			n.begin(rules)
			plans := []infer.Plan{{Name: "B", Source: c.source, Actions: []infer.Action{action}}}
			if err := a.confirmer(t.Context(), n, plans, plans[0].Actions).confirm(t.Context(), action); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}
