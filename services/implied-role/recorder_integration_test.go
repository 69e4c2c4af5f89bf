//go:build integration

package impliedrole_test

import (
	"context"
	"fmt"
	"maps"
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

// wanted is who must have what by the rules and explicit bindings that there are.
func (b *bed) wanted() grants {
	b.T.Helper()
	ns := infer.Namespace{Name: b.namespace, Bindings: b.read(b.allBindings())}
	for _, r := range b.allRules() {
		ns.Rules = append(ns.Rules, ruleOf(r))
	}
	all := grants{}
	for _, binding := range ns.Bindings {
		if !binding.Generated() && !binding.Deleting {
			all.add(binding.Role, binding.Subjects)
		}
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
	// always are the grants that were wanted, and there, from the beginning.
	always grants
}

// open begins a window: what was lost before is forgotten.
func (w *recorder) open() *window {
	w.T.Helper()
	w.caughtUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = map[grant]string{}
	always := w.wanted()
	maps.DeleteFunc(always, func(g grant, _ struct{}) bool { return w.counts[g] == 0 })
	return &window{w, always}
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

// step does something, after which only what is still wanted must have been there always.
// What people themselves take away with a binding, and garbage collection with what it
// owns, is none of the service's doing.
func (w *window) step(binding string, do func()) {
	w.T.Helper()
	before := w.get(binding)
	taken := grants{}
	if before != nil {
		taken.add(roleOf(before), before.Subjects)
		for _, g := range w.read(w.allBindings()) {
			if g.Source == binding {
				taken.add(g.Role, g.Subjects)
			}
		}
	}
	do()
	after := w.get(binding)
	deleted := before != nil && (after == nil || after.UID != before.UID)
	wanted := w.wanted()
	maps.DeleteFunc(w.always, func(g grant, _ struct{}) bool {
		_, still := wanted[g]
		_, excused := taken[g]
		return !still || excused && (deleted || before != nil && g.role == roleOf(before))
	})
}

// close complains of grants that were wanted all the time and were not there for a moment.
func (w *window) close() {
	w.T.Helper()
	w.caughtUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	for g := range w.always {
		if how, ok := w.lost[g]; ok {
			w.T.Errorf("%s %s lacked %s for a moment: %s", g.subject.Kind, g.subject.Name, g.role, how)
		}
	}
}
