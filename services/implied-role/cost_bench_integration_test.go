//go:build integration

package impliedrole_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/implied-role/infer"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// connections is the number of parallel calls of a naive client.
const connections = 8

// BenchmarkConvergence measures the time from the creation of rules until all bindings follow. For comparison, a naive
// client makes as many RoleBindings, once as a user and once with the rights of the service.
//
// In all cases the guard checks RoleBindings and the bindings are watched. The guard covers the namespace before its
// first rule, which costs one second once.
func BenchmarkConvergence(b *testing.B) {
	for _, size := range []struct{ bindings, rules int }{{1000, 100}, {5000, 100}} {
		b.Run(fmt.Sprintf("%d bindings, %d rules", size.bindings, size.rules), func(b *testing.B) {
			bed := newTestEnv(b)
			reflector := bed.StartReflector()
			bed.serveGuard()
			bed.do("first>second")
			bed.each(size.bindings, func(ctx context.Context, i int) error {
				source := binding(fmt.Sprintf("source-%d", i), fmt.Sprintf("p%d", i%size.rules), fmt.Sprintf("user-%d", i))
				return bed.create(ctx, source)
			})
			bed.AwaitNoCalls()
			var made, naive, entitled time.Duration
			reads := 0
			for b.Loop() {
				release := reflector.Pause()
				bed.each(size.rules, func(_ context.Context, i int) error {
					bed.do(fmt.Sprintf("p%d>c%d", i, i))
					return nil
				})
				before := bed.lookups()
				made += bed.takes(infer.ManagedByLabel+"="+infer.ManagedBy, size.bindings, func() error { release(); return nil })
				reads += bed.lookups() - before
				for i := range size.rules {
					bed.do(fmt.Sprintf("-p%d>c%d", i, i))
				}
				bed.counts(infer.ManagedByLabel+"="+infer.ManagedBy, 0)
				bed.AwaitNoCalls()
				naive += bed.naively(bed.Kube.AdminConfig(), size.bindings)
				entitled += bed.naively(bed.Kube.ServiceConfig(b, topology.ImpliedRole), size.bindings)
			}
			n := float64(b.N * size.bindings)
			b.ReportMetric(n/made.Seconds(), "made/s")
			b.ReportMetric(float64(reads)/n, "reads/binding")
			b.ReportMetric(n/naive.Seconds(), "naive/s")
			b.ReportMetric(naive.Seconds()/made.Seconds(), "of-naive")
			b.ReportMetric(entitled.Seconds()/made.Seconds(), "of-entitled")
		})
	}
}

// naively returns the time that n RoleBindings of a user take. Their names are new, because a recreated object costs
// NATS more.
func (b *testEnv) naively(somebody *rest.Config, n int) time.Duration {
	b.T.Helper()
	const bare = "bare=yes"
	suffix := strconv.FormatInt(time.Now().UnixNano(), 36)
	bindings := kubernetes.NewForConfigOrDie(somebody).RbacV1().RoleBindings(b.namespace)
	took := b.takes(bare, n, func() error {
		return runConcurrently(b.T.Context(), n, func(ctx context.Context, i int) error {
			one := bareBinding(i)
			one.Name += "-" + suffix
			_, err := bindings.Create(ctx, one, metav1.CreateOptions{})
			return err
		})
	})
	if err := b.typed.RbacV1().RoleBindings(b.namespace).DeleteCollection(b.T.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: bare}); err != nil {
		b.T.Fatal(err)
	}
	b.counts(bare, 0)
	b.AwaitNoCalls()
	return took
}

// takes returns the time from the call of do until n RoleBindings have the label.
func (b *testEnv) takes(label string, n int, do func() error) time.Duration {
	b.T.Helper()
	started, doing := time.Now(), errgroup.Group{}
	doing.Go(do)
	b.counts(label, n)
	if err := doing.Wait(); err != nil {
		b.T.Fatal(err)
	}
	return time.Since(started)
}

// lookups counts the reads of the service at the API server. A page of a list counts as one.
func (b *testEnv) lookups() int {
	n := 0
	for op, calls := range b.Kube.CallsByOp() {
		if strings.HasPrefix(op, "GET ") {
			n += calls
		}
	}
	return n
}

// each calls do n times, as a naive client does.
func (b *testEnv) each(n int, do func(ctx context.Context, i int) error) {
	b.T.Helper()
	if err := runConcurrently(b.T.Context(), n, do); err != nil {
		b.T.Fatal(err)
	}
}

func runConcurrently(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(connections)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// counts waits until the wanted number of RoleBindings has the label. It watches, because repeated lists would load the
// API server.
func (b *testEnv) counts(label string, want int) {
	b.T.Helper()
	n := map[string]struct{}{}
	b.watches(b.bindings(), metav1.ListOptions{LabelSelector: label}, func(name string, _ *unstructured.Unstructured, there bool) (done bool) {
		if n[name] = struct{}{}; !there {
			delete(n, name)
		}
		return len(n) == want
	})
}

// watches follows objects, including the existing ones, until see returns true.
func (b *testEnv) watches(objects dynamic.ResourceInterface, options metav1.ListOptions, see func(name string, is *unstructured.Unstructured, there bool) (done bool)) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.T.Context(), 10*time.Minute)
	defer cancel()
	list, err := objects.List(ctx, options)
	if err != nil {
		b.T.Fatal(err)
	}
	done := see("", nil, false)
	for i := range list.Items {
		done = see(list.Items[i].GetName(), &list.Items[i], true)
	}
	options.ResourceVersion = list.GetResourceVersion()
	w, err := objects.Watch(ctx, options)
	if err != nil {
		b.T.Fatal(err)
	}
	defer w.Stop()
	for !done {
		e, open := <-w.ResultChan()
		is, ok := e.Object.(*unstructured.Unstructured)
		if !open || !ok {
			b.T.Fatalf("the watch ended: %v", e)
		}
		done = see(is.GetName(), is, e.Type != watch.Deleted)
	}
}

// BenchmarkBindingBesideOneMoreRule measures the cost of one more rule for a new binding, beside one rule and beside
// 3,000. It alternates between both namespaces.
func BenchmarkBindingBesideOneMoreRule(b *testing.B) {
	const rules = 3000
	few := newTestEnv(b)
	few.StartReflector()
	few.guarded()
	many := few.in("many")
	many.roles("free")
	many.role(mallory,
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, ResourceNames: []string{"free"}, Verbs: []string{"bind"}},
	)
	many.do(mallory + "=" + mallory + "{" + mallory + "}")
	many.each(rules, func(_ context.Context, i int) error {
		many.do(fmt.Sprintf("filler-%d>filled-%d", i, i))
		return nil
	})
	few.AwaitNoCalls()
	took := map[*testEnv]time.Duration{}
	for b.Loop() {
		for _, bed := range []*testEnv{few, many} {
			started := time.Now()
			if err := bed.hands(mallory).binds("x", "free", mallory); err != nil {
				b.Fatal(err)
			}
			took[bed] += time.Since(started)
		}
	}
	each := func(bed *testEnv) float64 { return took[bed].Seconds() * 1000 / float64(b.N) }
	b.ReportMetric(each(few), "few-rules-ms")
	b.ReportMetric(each(many), "many-rules-ms")
	b.ReportMetric(each(many)-each(few), "more-ms")
}

// BenchmarkChain makes a chain of up to 1,000 rules and waits until every status lists the implied roles.
func BenchmarkChain(b *testing.B) {
	for _, rules := range []int{200, 1000} {
		b.Run(fmt.Sprintf("%d rules", rules), func(b *testing.B) {
			bed := newTestEnv(b)
			bed.StartReflector()
			bed.serveGuard()
			var took, applied time.Duration
			written := 0
			for b.Loop() {
				before, started := bed.Kube.Writes(), time.Now()
				bed.each(rules, func(_ context.Context, i int) error {
					bed.do(fmt.Sprintf("r%d>r%d", i, i+1))
					return nil
				})
				applied += time.Since(started)
				bed.tells(rules)
				took += time.Since(started)
				bed.AwaitNoCalls()
				written += bed.Kube.Writes() - before
				for i := range rules {
					bed.do(fmt.Sprintf("-r%d>r%d", i, i+1))
				}
				bed.AwaitNoCalls()
			}
			b.ReportMetric(took.Seconds()/float64(b.N), "set-up-s")
			b.ReportMetric(applied.Seconds()/float64(b.N), "applied-s")
			b.ReportMetric(float64(written)/float64(b.N*rules), "writes/rule")
		})
	}
}

// tells waits until all rules of a chain are synced and their statuses list the implied roles, up to the limit.
func (b *testEnv) tells(rules int) {
	b.T.Helper()
	const listed = 100
	told := map[string]struct{}{}
	b.watches(b.rules(), metav1.ListOptions{}, func(name string, is *unstructured.Unstructured, there bool) (done bool) {
		delete(told, name)
		if there {
			var r rolev1alpha1.ImpliedRoles
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(is.Object, &r); err != nil {
				b.T.Fatal(err)
			}
			at := 0
			if _, err := fmt.Sscanf(r.Spec.InferenceRule.ParentRole, "r%d", &at); err != nil {
				b.T.Fatal(err)
			}
			if len(r.Status.Inferences.ChildRoles) == min(listed, rules-at) && meta.IsStatusConditionTrue(r.Status.Conditions, rolev1alpha1.Synced) {
				told[name] = struct{}{}
			}
		}
		return len(told) == rules
	})
}

// BenchmarkWebhookPropagation measures the time from the registration of a namespace until the API server calls the
// webhook for it.
func BenchmarkWebhookPropagation(b *testing.B) {
	bed := newTestEnv(b)
	bed.StartReflector()
	bed.guarded().Stop()
	c := bed.configuration()
	var took, longest time.Duration
	n := 0
	for b.Loop() {
		other := bed.in(fmt.Sprintf("learned-%d", n))
		n++
		other.role(mallory, rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"create"}})
		other.roles("free")
		other.do(mallory + "=" + mallory + "{" + mallory + "}")
		h := other.hands(mallory)
		testenv.Eventually(b, soon, h.tries)
		c.Webhooks[1].NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{other.namespace},
		}}
		var err error
		if c, err = bed.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(b.Context(), c, metav1.UpdateOptions{}); err != nil {
			b.Fatal(err)
		}
		since := time.Now()
		for h.tries() == nil {
		}
		took += time.Since(since)
		longest = max(longest, time.Since(since))
	}
	b.ReportMetric(took.Seconds()*1000/float64(n), "learned-ms")
	b.ReportMetric(longest.Seconds()*1000, "longest-ms")
}

// tries makes a binding as a dry run.
func (h dryRunClients) tries() error {
	_, err := h.typed.RbacV1().RoleBindings(h.namespace).Create(h.T.Context(), binding("x", "free", mallory), metav1.CreateOptions{DryRun: dry()})
	return err
}
