//go:build integration

package impliedrole_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// grant is one role of one subject.
type grant struct {
	role    infer.Role
	subject rbacv1.Subject
}

// grants is a set of grants.
type grants map[grant]struct{}

func roleOf(b *rbacv1.RoleBinding) infer.Role {
	return infer.Role{Name: b.RoleRef.Name, Cluster: b.RoleRef.Kind == infer.KindClusterRole}
}

func (g grants) add(r infer.Role, subjects []rbacv1.Subject) {
	for _, s := range subjects {
		g[grant{r, s}] = struct{}{}
	}
}

// world returns the existing rules and explicit bindings.
func (b *testEnv) world() infer.NamespaceInput {
	b.T.Helper()
	ns := infer.NamespaceInput{Name: b.namespace, Bindings: b.read(b.allBindings())}
	ns.Bindings = slices.DeleteFunc(ns.Bindings, func(x *infer.Binding) bool { return x.IsGenerated() || x.Deleting })
	for _, r := range b.allRules() {
		ns.Rules = append(ns.Rules, ruleOf(r))
	}
	return ns
}

// commonWorld returns the common part of two worlds.
func commonWorld(one, other infer.NamespaceInput) infer.NamespaceInput {
	both := infer.NamespaceInput{Name: one.Name}
	for _, b := range one.Bindings {
		i := slices.IndexFunc(other.Bindings, func(x *infer.Binding) bool { return x.UID == b.UID && x.Role == b.Role })
		if i < 0 {
			continue
		}
		kept := *b
		kept.Subjects = slices.DeleteFunc(slices.Clone(b.Subjects), func(s rbacv1.Subject) bool { return !slices.Contains(other.Bindings[i].Subjects, s) })
		both.Bindings = append(both.Bindings, &kept)
	}
	for _, r := range one.Rules {
		if slices.ContainsFunc(other.Rules, func(x infer.Rule) bool {
			return x.Name == r.Name && x.Created.Equal(r.Created) && x.Parent == r.Parent && x.Child == r.Child
		}) {
			both.Rules = append(both.Rules, r)
		}
	}
	return both
}

// wanted returns the grants that the rules and explicit bindings of a world require.
func wanted(ns infer.NamespaceInput) grants {
	all := grants{}
	for _, binding := range ns.Bindings {
		all.add(binding.Role, binding.Subjects)
	}
	for _, w := range infer.EvaluateNamespace(ns, infer.DefaultPolicy()).Desired {
		all.add(w.Child, w.Source.Subjects)
	}
	return all
}

// bindingRecorder watches every state of the bindings of a namespace, in order.
type bindingRecorder struct {
	*testEnv
	mu       sync.Mutex
	bindings map[string]*rbacv1.RoleBinding
	counts   map[grant]int
	// lost describes the moment at which each grant vanished, however shortly.
	lost map[grant]string
	// watched counts the grants that had to exist during a whole window.
	watched int
}

func (b *testEnv) recorder() *bindingRecorder {
	b.T.Helper()
	list, err := b.typed.RbacV1().RoleBindings(b.namespace).List(b.T.Context(), metav1.ListOptions{})
	if err != nil {
		b.T.Fatal(err)
	}
	w := &bindingRecorder{testEnv: b, bindings: map[string]*rbacv1.RoleBinding{}, counts: map[grant]int{}, lost: map[grant]string{}}
	for i := range list.Items {
		w.see(watch.Event{Type: watch.Added, Object: &list.Items[i]})
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.T.Context()))
	var group sync.WaitGroup
	group.Go(func() { w.follow(ctx, list.ResourceVersion) })
	b.T.Cleanup(func() { cancel(); group.Wait() })
	return w
}

func (w *bindingRecorder) follow(ctx context.Context, version string) {
	for ctx.Err() == nil {
		events, err := w.typed.RbacV1().RoleBindings(w.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			<-time.After(10 * time.Millisecond)
			continue
		}
		for e := range events.ResultChan() {
			if binding, ok := e.Object.(*rbacv1.RoleBinding); ok {
				version = binding.ResourceVersion
				w.see(e)
			}
		}
	}
}

func (w *bindingRecorder) see(e watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	is, _ := e.Object.(*rbacv1.RoleBinding)
	was := w.bindings[is.Name]
	gained, gone := grants{}, grants{}
	if was != nil {
		gone.add(roleOf(was), was.Subjects)
	}
	if w.bindings[is.Name] = is; e.Type == watch.Deleted {
		delete(w.bindings, is.Name)
	} else {
		gained.add(roleOf(is), is.Subjects)
	}
	for g := range gained {
		w.counts[g]++
	}
	for g := range gone {
		if w.counts[g]--; w.counts[g] == 0 {
			delete(w.counts, g)
			w.lost[g] = fmt.Sprintf("%s of %s at version %s", e.Type, is.Name, is.ResourceVersion)
		}
	}
}

// changePeriod is a time in which objects change.
type changePeriod struct {
	*bindingRecorder
	// steady holds the rules and explicit bindings that did not change in this window. Their grants must exist
	// throughout, in whatever order the service receives the other changes.
	steady infer.NamespaceInput
	// there holds the grants that existed at the beginning, without those that the test itself removed.
	there grants
}

// open begins a window and clears the lost grants.
func (w *bindingRecorder) open() *changePeriod {
	w.T.Helper()
	w.caughtUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = map[grant]string{}
	there := grants{}
	for g := range w.counts {
		there[g] = struct{}{}
	}
	return &changePeriod{w, w.world(), there}
}

// caughtUp waits until the recorder has received the current state of all bindings.
func (w *bindingRecorder) caughtUp() {
	w.T.Helper()
	testenv.Eventually(w.T, soon, func() error {
		live := map[string]string{}
		for _, binding := range w.allBindings() {
			live[binding.Name] = binding.ResourceVersion
		}
		seen := map[string]string{}
		w.mu.Lock()
		defer w.mu.Unlock()
		for name, binding := range w.bindings {
			seen[name] = binding.ResourceVersion
		}
		if !maps.Equal(live, seen) {
			return fmt.Errorf("got bindings %v, the recorder has %v", live, seen)
		}
		return nil
	})
}

// step makes a change. Grants that the test removes with a generated binding are not the fault of the service.
func (w *changePeriod) step(binding string, do func()) {
	w.T.Helper()
	if before := w.get(binding); before != nil && readLiveObject(w.T, before).IsGenerated() {
		for _, s := range before.Subjects {
			delete(w.there, grant{roleOf(before), s})
		}
	}
	do()
	w.steady = commonWorld(w.steady, w.world())
}

// close reports steady grants that were missing for a moment.
func (w *changePeriod) close() {
	w.T.Helper()
	always := wanted(w.steady)
	maps.DeleteFunc(always, func(g grant, _ struct{}) bool { _, ok := w.there[g]; return !ok })
	w.watched += len(always)
	w.kept(always)
}

// kept reports the given grants that were missing for a moment.
func (w *bindingRecorder) kept(always grants) {
	w.T.Helper()
	w.caughtUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	for g := range always {
		if how, ok := w.lost[g]; ok {
			w.T.Errorf("%s %s lacked %s for a moment: %s", g.subject.Kind, g.subject.Name, g.role, how)
		}
	}
}
