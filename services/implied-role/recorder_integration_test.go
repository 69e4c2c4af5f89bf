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
	"github.com/entail-dev/entail/services/internal/testbed"
)

// grant is a role of a subject.
type grant struct {
	role    infer.Role
	subject rbacv1.Subject
}

// grants are who has what.
type grants map[grant]struct{}

func roleOf(b *rbacv1.RoleBinding) infer.Role {
	return infer.Role{Name: b.RoleRef.Name, Cluster: b.RoleRef.Kind == infer.KindClusterRole}
}

func (g grants) add(r infer.Role, subjects []rbacv1.Subject) {
	for _, s := range subjects {
		g[grant{r, s}] = struct{}{}
	}
}

// world is the rules and explicit bindings that there are.
func (b *bed) world() infer.Namespace {
	b.T.Helper()
	ns := infer.Namespace{Name: b.namespace, Bindings: b.read(b.allBindings())}
	ns.Bindings = slices.DeleteFunc(ns.Bindings, func(x *infer.Binding) bool { return x.Generated() || x.Deleting })
	for _, r := range b.allRules() {
		ns.Rules = append(ns.Rules, ruleOf(r))
	}
	return ns
}

// untouched is what two worlds have in common.
func untouched(one, other infer.Namespace) infer.Namespace {
	both := infer.Namespace{Name: one.Name}
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

// wanted is who must have what by the rules and explicit bindings of a world.
func wanted(ns infer.Namespace) grants {
	all := grants{}
	for _, binding := range ns.Bindings {
		all.add(binding.Role, binding.Subjects)
	}
	for _, w := range infer.Infer(ns, infer.DefaultPolicy()).Desired {
		all.add(w.Child, w.Source.Subjects)
	}
	return all
}

// recorder sees every state that the bindings of a namespace go through, in order.
type recorder struct {
	*bed
	mu       sync.Mutex
	bindings map[string]*rbacv1.RoleBinding
	counts   map[grant]int
	// lost tells of each grant that vanished, however shortly, when it was.
	lost map[grant]string
	// watched counts the grants that had to be there for a whole window.
	watched int
}

func (b *bed) recorder() *recorder {
	b.T.Helper()
	list, err := b.typed.RbacV1().RoleBindings(b.namespace).List(b.T.Context(), metav1.ListOptions{})
	if err != nil {
		b.T.Fatal(err)
	}
	w := &recorder{bed: b, bindings: map[string]*rbacv1.RoleBinding{}, counts: map[grant]int{}, lost: map[grant]string{}}
	for i := range list.Items {
		w.see(watch.Event{Type: watch.Added, Object: &list.Items[i]})
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.T.Context()))
	var group sync.WaitGroup
	group.Go(func() { w.follow(ctx, list.ResourceVersion) })
	b.T.Cleanup(func() { cancel(); group.Wait() })
	return w
}

func (w *recorder) follow(ctx context.Context, version string) {
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

func (w *recorder) see(e watch.Event) {
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

// window is a time in which things happen.
type window struct {
	*recorder
	// steady are the rules and explicit bindings that nobody touched so far: what follows from
	// them must be there whatever of the rest the service heard first.
	steady infer.Namespace
	// there are the grants from the beginning, but those that people took themselves.
	there grants
}

// open begins a window: what was lost before is forgotten.
func (w *recorder) open() *window {
	w.T.Helper()
	w.caughtUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = map[grant]string{}
	there := grants{}
	for g := range w.counts {
		there[g] = struct{}{}
	}
	return &window{w, w.world(), there}
}

// caughtUp waits until the recorder has seen everything so far.
func (w *recorder) caughtUp() {
	w.T.Helper()
	testbed.Eventually(w.T, soon, func() error {
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
			return fmt.Errorf("there is %v, seen is %v", live, seen)
		}
		return nil
	})
}

// step does something. What people themselves take away with a generated binding is none of the
// service's doing.
func (w *window) step(binding string, do func()) {
	w.T.Helper()
	if before := w.get(binding); before != nil && read(w.T, before).Generated() {
		for _, s := range before.Subjects {
			delete(w.there, grant{roleOf(before), s})
		}
	}
	do()
	w.steady = untouched(w.steady, w.world())
}

// close complains of grants that nobody touched and that were not there for a moment.
func (w *window) close() {
	w.T.Helper()
	always := wanted(w.steady)
	maps.DeleteFunc(always, func(g grant, _ struct{}) bool { _, ok := w.there[g]; return !ok })
	w.watched += len(always)
	w.kept(always)
}

// kept complains of grants that were not there for a moment.
func (w *recorder) kept(always grants) {
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
