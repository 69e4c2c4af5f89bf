//go:build integration

package impliedrole_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/implied-role/infer"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// BenchmarkStart measures a start with all objects on NATS and all bindings in step, until every message is settled. It
// then measures a resync. Times are processor times and include the servers in this process.
func BenchmarkStart(b *testing.B) {
	for _, shape := range []struct{ namespaces, sources int }{{1, 20_000}, {100, 200}} {
		b.Run(fmt.Sprintf("%d namespaces with %d sources", shape.namespaces, shape.sources), func(b *testing.B) {
			bed := newTestEnv(b)
			bed.publishInStep(shape.namespaces, shape.sources)
			var start, resync time.Duration
			n := 0
			for b.Loop() {
				n++
				before := cpu()
				r := bed.serveWith(func(c *impliedrole.Config) { c.Policy.MaxGenerated, c.Resync = 1<<40, time.Hour })
				bed.acknowledged()
				bed.idle()
				start += cpu() - before
				before = cpu()
				bed.RequestResync(topology.ImpliedRole)
				bed.idle()
				resync += cpu() - before
				r.Stop()
				bed.DeleteDurable(topology.ImpliedRole)
			}
			b.ReportMetric(start.Seconds()/float64(n), "start-cpu-s")
			b.ReportMetric(resync.Seconds()/float64(n), "resync-cpu-s")
		})
	}
}

// cpu returns the processor time that this process has used.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// idle waits until this process has used little processor time for a while.
func (b *testEnv) idle() {
	b.T.Helper()
	before, since := cpu(), time.Now()
	testenv.Eventually(b.T, 10*time.Minute, func() error {
		used, took := cpu()-before, time.Since(since)
		if took < 500*time.Millisecond {
			return errBusy
		}
		before, since = cpu(), time.Now()
		if used > took/20 {
			return errBusy
		}
		return nil
	})
}

var errBusy = errors.New("still busy")

// acknowledged waits until the service has settled every message.
func (b *testEnv) acknowledged() {
	b.T.Helper()
	testenv.Eventually(b.T, 10*time.Minute, func() error {
		durable, err := b.JS.Consumer(b.T.Context(), topology.Changes, topology.ImpliedRole)
		if err != nil {
			return err
		}
		if i := durable.CachedInfo(); i.AckFloor.Consumer == 0 || i.NumPending+uint64(i.NumAckPending) > 0 {
			return fmt.Errorf("%w: %d messages", errBusy, i.NumPending+uint64(i.NumAckPending))
		}
		return nil
	})
}

// publishInStep writes rules, sources and all generated bindings to NATS, as if they existed.
func (b *testEnv) publishInStep(namespaces, sources int) {
	b.T.Helper()
	const depth = 4
	of := []kinds.Kind{kinds.ImpliedRoles(), kinds.RoleBindings(), kinds.ClusterRoleBindings(), kinds.Roles(), kinds.ClusterRoles()}
	b.PublishObjects(of, func(fill func(kinds.Kind, metav1.Object)) {
		version := 0
		put := func(kind kinds.Kind, object metav1.Object) {
			version++
			object.SetUID(types.UID(fmt.Sprintf("0a1b2c3d-0000-0000-0000-%012d", version)))
			object.SetGeneration(1)
			fill(kind, object)
		}
		for i := range namespaces {
			namespace := fmt.Sprintf("many-%d", i)
			var rules []infer.Rule
			for d := range depth {
				rules = append(rules, infer.Rule{Name: fmt.Sprintf("rule-%d", d), Parent: role(fmt.Sprintf("role-%d", d)), Child: role(fmt.Sprintf("role-%d", d+1))})
			}
			policy := infer.DefaultPolicy()
			policy.MaxGenerated = 1 << 40
			ruleSet := infer.NewRuleSet(namespace, rules, policy)
			for _, r := range ruleSet.Rules() {
				put(kinds.ImpliedRoles(), inStep(namespace, r, ruleSet))
			}
			for j := range sources {
				source := &rbacv1.RoleBinding{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("source-%d", j)},
					RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "role-0"},
					Subjects:   []rbacv1.Subject{subject(fmt.Sprintf("user-%d", j))},
				}
				put(kinds.RoleBindings(), source)
				for _, d := range ruleSet.DesiredBindings(readLiveObject(b.T, source)) {
					put(kinds.RoleBindings(), d.ToRoleBinding())
				}
			}
		}
	})
}

// inStep returns a rule whose status is correct if no Role exists.
func inStep(namespace string, r infer.EvaluatedRule, ruleSet *infer.RuleSet) *rolev1alpha1.ImpliedRoles {
	rule := &rolev1alpha1.ImpliedRoles{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.Name}}
	rule.Spec.InferenceRule = rolev1alpha1.InferenceRule{ParentRole: r.Parent.Name, ChildRole: r.Child.Name}
	want := ruleSet.StatusWithChildren(r, infer.StatusInput{Exists: func(infer.Role) bool { return false }})
	rule.Status.ObservedGeneration = 1
	rule.Status.Inferences = rolev1alpha1.RuleInferences{ParentRole: want.Parent.String(), ChildRoles: strings.Fields(texts(want.Children))}
	rule.Status.Conditions = condition.MergeConditions(nil, nil, 1, metav1.Now(), append(want.Conditions(), infer.JudgedCondition(rule, time.Time{}))...)
	return rule
}
