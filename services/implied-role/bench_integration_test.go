//go:build integration

package impliedrole_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// BenchmarkWrites measures a new rule that generates many RoleBindings, and its removal. For comparison, a bare client
// makes the same number with as many calls in parallel.
func BenchmarkWrites(b *testing.B) {
	const sources, children, inFlight = 500, 4, 32
	bed := newTestEnv(b)
	bed.StartReflector()
	bed.serve()
	var group errgroup.Group
	group.SetLimit(inFlight)
	for i := range sources {
		group.Go(func() error {
			return bed.create(b.Context(), &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("source-%d", i)},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "a"},
				Subjects:   []rbacv1.Subject{subject(fmt.Sprintf("user-%d", i))},
			})
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	for i := 1; i < children; i++ {
		bed.do(fmt.Sprintf("b%d>b%d", i-1, i))
	}
	bed.AwaitNoCalls()
	reach := func(want int) {
		b.Helper()
		testenv.Eventually(b, 5*time.Minute, func() error {
			if got := bed.countGenerated(); got != want {
				return fmt.Errorf("%d generated, want %d", got, want)
			}
			return nil
		})
	}
	var made, gone, bare time.Duration
	n := 0
	for b.Loop() {
		n++
		started := time.Now()
		bed.do("a>b0")
		reach(sources * children)
		made += time.Since(started)
		started = time.Now()
		bed.do("-a>b0")
		reach(0)
		gone += time.Since(started)
		started = time.Now()
		for i := range sources * children {
			group.Go(func() error { return bed.create(b.Context(), bareBinding(i)) })
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
		bare += time.Since(started)
		if err := bed.typed.RbacV1().RoleBindings(bed.namespace).DeleteCollection(b.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "bare=yes"}); err != nil {
			b.Fatal(err)
		}
	}
	perSecond := func(d time.Duration) float64 { return float64(n*sources*children) / d.Seconds() }
	b.ReportMetric(perSecond(made), "created/s")
	b.ReportMetric(perSecond(gone), "deleted/s")
	b.ReportMetric(perSecond(bare), "bare-created/s")
}

// bareBinding returns a binding like a generated one, but without labels and owner of the service.
func bareBinding(i int) *rbacv1.RoleBinding {
	source := &infer.Binding{Name: "x", UID: "x", Role: role("a"), Subjects: []rbacv1.Subject{subject("u")}}
	rule := infer.Rule{Parent: role("a"), Child: role("b")}
	for _, w := range infer.NewRuleSet("", []infer.Rule{rule}, infer.DefaultPolicy()).WithPausedRules(0, nil).DesiredBindings(source) {
		b := w.ToRoleBinding()
		b.Name, b.OwnerReferences, b.Labels = fmt.Sprintf("bare-%d", i), nil, map[string]string{"bare": "yes"}
		return b
	}
	return nil
}

func (b *testEnv) create(ctx context.Context, binding *rbacv1.RoleBinding) error {
	_, err := b.typed.RbacV1().RoleBindings(b.namespace).Create(ctx, binding, metav1.CreateOptions{})
	return err
}

var errPages = errors.New("the list has several pages")

// countGenerated counts the generated bindings in the API server's cache, which costs little.
func (b *testEnv) countGenerated() int {
	b.T.Helper()
	list, err := b.typed.RbacV1().RoleBindings(b.namespace).List(b.T.Context(), metav1.ListOptions{
		LabelSelector: infer.ManagedByLabel + "=" + infer.ManagedBy, ResourceVersion: "0",
	})
	if err == nil && list.Continue != "" {
		err = errPages
	}
	if err != nil {
		b.T.Fatal(err)
	}
	return len(list.Items)
}

// BenchmarkRevocationUnderStatuses takes a role from a subject while the statuses of 400 rules are written. It reports
// the total time, and the times at which NATS has the change and the API server receives and answers the call.
func BenchmarkRevocationUnderStatuses(b *testing.B) {
	const rules = 400
	bed := newTestEnv(b)
	bed.StartReflector()
	bed.serve()
	for i := range rules {
		bed.do(fmt.Sprintf("c%d>hub", i))
	}
	bed.do("a>b")
	statuses := func(n int) {
		b.Helper()
		testenv.Eventually(b, time.Minute, func() error {
			if got := bed.Kube.Writes(); got < n {
				return fmt.Errorf("%d writes, want %d statuses", got, n)
			}
			return nil
		})
	}
	var began atomic.Pointer[time.Time]
	steps := map[string]*atomic.Int64{"told": {}, "called": {}, "answered": {}, "revoked": {}}
	reach := func(step string) {
		if since := began.Load(); since != nil {
			steps[step].Add(int64(time.Since(*since)))
		}
	}
	at := func(step string) testenv.Fault {
		return func(_ context.Context, op string) error {
			if strings.HasSuffix(op, "/"+name("B", "b")) {
				reach(step)
			}
			return nil
		}
	}
	bed.Kube.FailBefore(at("called"))
	bed.Kube.FailAfter(at("answered"))
	source := event.Key{Cluster: "local", GroupResource: kinds.RoleBindings().GroupResource, Namespace: bed.namespace, Name: "B"}
	told, err := bed.JS.Conn().Subscribe(topology.ChangeSubject(source), func(*nats.Msg) { reach("told") })
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = told.Unsubscribe() }()
	for b.Loop() {
		bed.do("B=a{x,y}")
		bed.generates("B:b{x,y}")
		bed.AwaitNoCalls()
		written := bed.Kube.Writes()
		bed.do("hub>last")
		statuses(written + rules/8)
		now := time.Now()
		began.Store(&now)
		bed.do("B=a{x}")
		bed.generates("B:b{x}")
		reach("revoked")
		began.Store(nil)
		statuses(written + rules)
		bed.do("-hub>last")
		statuses(written + 2*rules)
	}
	for step, took := range steps {
		b.ReportMetric(float64(took.Load())/1e6/float64(b.N), step+"-ms")
	}
}
