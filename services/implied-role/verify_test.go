package impliedrole

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

// fakeAPIServer is a fake API server. Gets return the current objects, lists return earlier ones.
type fakeAPIServer struct {
	apiServerClient
	is, was map[event.Key]event.Change

	mu    sync.Mutex
	calls []string
}

func (a *fakeAPIServer) called(verb, what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, verb+" "+what)
}

func (a *fakeAPIServer) Get(_ context.Context, kind kinds.Kind, namespace, name string) (event.Change, error) {
	a.called("get", name)
	if c, there := a.is[event.Key{Cluster: "local", GroupResource: kind.GroupResource, Namespace: namespace, Name: name}]; there {
		return c, nil
	}
	return event.Change{}, kube.ErrNotFound
}

func (a *fakeAPIServer) List(_ context.Context, kind kinds.Kind, _ string) iter.Seq2[event.Change, error] {
	a.called("list", kind.Resource)
	return func(yield func(event.Change, error) bool) {
		for key, c := range a.was {
			if key.GroupResource == kind.GroupResource && !yield(c, nil) {
				return
			}
		}
	}
}

func (a *fakeAPIServer) ReadNewest(_ context.Context, _ kinds.Kind, obj event.Change) (event.Change, error) {
	a.called("refresh", obj.Key.Name)
	if c, there := a.is[obj.Key]; there {
		return c, nil
	}
	obj.Deleted = true
	return obj, nil
}

// says returns an object as the API server would send it. The UID follows from the name.
func says(kind kinds.Kind, name string, version int, object any) event.Change {
	data, err := json.Marshal(object)
	if err != nil {
		return event.Change{}
	}
	return event.Change{
		Key: event.Key{Cluster: "local", GroupResource: kind.GroupResource, Namespace: "ns", Name: name},
		UID: "uid-" + name, ResourceVersion: fmt.Sprint(version), Object: data,
	}
}

func ruleSays(name string, version int, deleting bool) event.Change {
	parent, child, _ := strings.Cut(name, "-")
	r := &rolev1alpha1.ImpliedRoles{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	r.Spec.InferenceRule = rolev1alpha1.InferenceRule{ParentRole: parent, ChildRole: child}
	if version > 1 {
		r.Spec.InferenceRule.ParentRole = "other"
	}
	if deleting {
		r.DeletionTimestamp = now()
	}
	return says(kinds.ImpliedRoles(), name, version, r)
}

func now() *metav1.Time {
	now := metav1.Now()
	return &now
}

func bindingSays(name string, version int, deleting bool, users ...string) event.Change {
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "a"},
	}
	for _, user := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, Name: user})
	}
	if deleting {
		b.DeletionTimestamp = now()
	}
	return says(kinds.RoleBindings(), name, version, b)
}

// confirmed verifies that the sources may give the role c. It returns the calls of the API server and the errors.
func (w *trackedState) confirmed(a *fakeAPIServer, sources ...*infer.Binding) (calls string, errs error) {
	n, rules := w.memory.ensureNamespaceHistory("ns"), w.state.RuleSet("ns")
	n.beginPass(rules)
	var plans []infer.SourcePlan
	var actions []infer.Action
	for _, source := range sources {
		action := infer.Action{Verb: infer.Create, Source: source.Name, Parent: infer.Role{Name: "a"}, Child: infer.Role{Name: "c"}, Subjects: source.Subjects}
		plans, actions = append(plans, infer.SourcePlan{Name: source.Name, Source: source}), append(actions, action)
	}
	verifier := (&planApplier{state: w.state, view: w.view, kube: a}).newVerifier(w.t.Context(), n, plans, actions)
	for _, action := range actions {
		errs = errors.Join(errs, verifier.verifyAction(w.t.Context(), action))
	}
	slices.Sort(a.calls)
	return strings.Join(a.calls, ", "), errs
}

// TestVerifierVerifiesGrantsOnly gives a role by the rules a-b and b-c. The rule x-y is unrelated.
func TestVerifierVerifiesGrantsOnly(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *trackedState, a *fakeAPIServer)
		want   error
		calls  string
	}{
		"as it is": {func(*trackedState, *fakeAPIServer) {}, nil, "get B, get a-b, get b-c"},
		"another rule is not as the bus says": {
			func(_ *trackedState, a *fakeAPIServer) { delete(a.is, ruleSays("x-y", 1, false).Key) }, nil, "get B, get a-b, get b-c",
		},
		"a rule is none": {
			func(_ *trackedState, a *fakeAPIServer) { delete(a.is, ruleSays("b-c", 1, false).Key) }, reconcile.ErrStale, "get a-b, get b-c, refresh b-c",
		},
		"a rule says something else": {
			func(_ *trackedState, a *fakeAPIServer) { a.put(ruleSays("a-b", 2, false)) }, reconcile.ErrStale, "get a-b, get b-c, refresh a-b",
		},
		"a rule is being deleted": {
			func(_ *trackedState, a *fakeAPIServer) { a.put(ruleSays("a-b", 1, true)) }, reconcile.ErrStale, "get a-b, get b-c, refresh a-b",
		},
		"the binding was forged, and the view holds the true one by now": {
			func(w *trackedState, a *fakeAPIServer) {
				a.put(bindingSays("B", 2, false, "v"))
				w.apply(bindingSays("B", 2, false, "v"))
			},
			reconcile.ErrStale, "get B, get a-b, get b-c, refresh B",
		},
		"the binding is being deleted": {
			func(_ *trackedState, a *fakeAPIServer) { a.put(bindingSays("B", 2, true, "u")) }, reconcile.ErrStale, "get B, get a-b, get b-c, refresh B",
		},
		"the binding is none": {
			func(_ *trackedState, a *fakeAPIServer) { delete(a.is, bindingSays("B", 1, false).Key) }, reconcile.ErrStale, "get B, get a-b, get b-c, refresh B",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := newTrackedState(t), &fakeAPIServer{is: map[event.Key]event.Change{}}
			for _, c := range []event.Change{ruleSays("a-b", 1, false), ruleSays("b-c", 1, false), ruleSays("x-y", 1, false), bindingSays("B", 1, false, "u")} {
				w.apply(c)
				a.put(c)
			}
			planned := w.state.Binding("ns", "B")
			c.change(w, a)
			if calls, err := w.confirmed(a, planned); !errors.Is(err, c.want) || calls != c.calls {
				t.Errorf("got %v by calls %s, want %v by %s", err, calls, c.want, c.calls)
			}
		})
	}
}

func TestForgedFutureVersionIsCorrected(t *testing.T) {
	rule := ruleSays("a-c", 1, false)
	rule.Key.Name, rule.UID, rule.ResourceVersion, rule.Object = "x-c", "uid-x-c", "900", bytes.ReplaceAll(rule.Object, []byte("a-c"), []byte("x-c"))
	for _, lie := range []event.Change{bindingSays("B", 900, false, "u", "v"), rule} {
		t.Run(lie.Key.Name, func(t *testing.T) {
			w, a := newTrackedState(t), &fakeAPIServer{is: map[event.Key]event.Change{}}
			for _, c := range []event.Change{ruleSays("b-c", 1, false), ruleSays("x-c", 1, false), bindingSays("B", 1, false, "u")} {
				w.apply(c)
				a.put(c)
			}
			if lie.Key.Name == "B" {
				w.apply(ruleSays("a-b", 1, false))
				a.put(ruleSays("a-b", 1, false))
			}
			w.apply(lie)
			if calls, err := w.confirmed(a, w.state.Binding("ns", "B")); !errors.Is(err, reconcile.ErrStale) {
				t.Errorf("got %v by calls %s", err, calls)
			}
			held, _ := w.state.Bindings.Get(bindingSays("B", 1, false).Key)
			_, rules := w.state.RuleSetAndRules("ns")
			future := slices.ContainsFunc(rules, func(r state.Rule) bool { return r.ResourceVersion != "1" })
			if held.ResourceVersion != "1" || future {
				t.Errorf("got version %s and rules %+v in the view", held.ResourceVersion, rules)
			}
		})
	}
}

func (a *fakeAPIServer) put(c event.Change) { a.is[c.Key] = c }

// TestVerifierListsManySources gives a role by different shares of the bindings. One binding has changed since the
// listing.
func TestVerifierListsManySources(t *testing.T) {
	for name, c := range map[string]struct {
		sources, bindings int
		want              string
	}{
		"few":            {few, few, fmt.Sprintf("get %d, list 0", few+2)},
		"many of all":    {few + 1, few + 1, "get 3, list 1"},
		"less than many": {few + 1, listed * (few + 1), fmt.Sprintf("get %d, list 0", few+3)},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := newTrackedState(t), &fakeAPIServer{is: map[event.Key]event.Change{}}
			for _, c := range []event.Change{ruleSays("a-b", 1, false), ruleSays("b-c", 1, false)} {
				w.apply(c)
				a.put(c)
			}
			var sources []*infer.Binding
			for i := range c.bindings {
				name := fmt.Sprint("B", i)
				w.apply(bindingSays(name, 1, false, "u"))
				if a.put(bindingSays(name, 1, false, "u")); i < c.sources {
					sources = append(sources, w.state.Binding("ns", name))
				}
			}
			a.was = maps.Clone(a.is)
			delete(a.was, bindingSays("B0", 1, false).Key)
			calls, err := w.confirmed(a, sources...)
			if got := fmt.Sprintf("get %d, list %d", strings.Count(calls, "get"), strings.Count(calls, "list")); err != nil || got != c.want {
				t.Errorf("got %v by calls %s, want %s", err, got, c.want)
			}
		})
	}
}

// manySources returns so many sources that listing costs less than reading, both in the informer and at the fake API
// server.
func manySources(t *testing.T) (*trackedState, *fakeAPIServer, []*infer.Binding) {
	t.Helper()
	w, a := newTrackedState(t), &fakeAPIServer{is: map[event.Key]event.Change{}}
	for _, c := range []event.Change{ruleSays("a-b", 1, false), ruleSays("b-c", 1, false)} {
		w.apply(c)
		a.put(c)
	}
	var sources []*infer.Binding
	for i := range 2 * few {
		c := bindingSays(fmt.Sprint("B", i), 1, false, "u")
		w.apply(c)
		a.put(c)
		sources = append(sources, w.state.Binding("ns", c.Key.Name))
	}
	a.was = maps.Clone(a.is)
	return w, a, sources
}

// TestVerifierReusesListingOfEarlierPass verifies that a pass which completes an earlier one reuses its listing. A pass
// for later changes makes a new one.
func TestVerifierReusesListingOfEarlierPass(t *testing.T) {
	w, a, sources := manySources(t)
	for i, pass := range []struct {
		ending passResult
		lists  int
	}{{passResult{unfinished: true}, 1}, {passResult{unfinished: true}, 1}, {passResult{finished: true}, 1}, {passResult{finished: true}, 2}} {
		calls, err := w.confirmed(a, sources[i:]...)
		if got := strings.Count(calls, "list"); err != nil || got != pass.lists {
			t.Errorf("pass %d: got %d lists, want %d: %v", i, got, pass.lists, err)
		}
		w.memory.ensureNamespaceHistory("ns").endPass(pass.ending)
	}
}

// TestVerifierRereadsSourceWithNewChange verifies that a listing does not confirm a source for which NATS brings a new
// state. The API server no longer has this source.
func TestVerifierRereadsSourceWithNewChange(t *testing.T) {
	w, a, sources := manySources(t)
	n := w.memory.ensureNamespaceHistory("ns")
	n.takePendingChanges()
	if _, err := w.confirmed(a, sources...); err != nil {
		t.Fatal(err)
	}
	n.endPass(passResult{unfinished: true})
	again := bindingSays("B7", 2, false, "u")
	delete(a.is, again.Key)
	w.apply(again)
	n.takePendingChanges()
	if _, err := w.confirmed(a, w.state.Binding("ns", "B7")); err == nil {
		t.Error("an old listing confirmed a deleted source")
	}
}
