//go:build integration

package impliedrole_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func name(source, child string) string { return infer.Name(source, role(child)) }

// patch changes a binding as another author would.
func (b *bed) patch(name, patch string) {
	b.T.Helper()
	b.Patch(kinds.RoleBindings().In(b.namespace), name, patch)
}

func (b *bed) get(name string) *rbacv1.RoleBinding {
	b.T.Helper()
	all := b.allBindings()
	i := slices.IndexFunc(all, func(x *rbacv1.RoleBinding) bool { return x.Name == name })
	if i < 0 {
		return nil
	}
	return all[i]
}

func TestX1WhatIsDoneToAGeneratedBindingIsUndone(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serve()
	b.do("a>b B=a{x}")
	b.becomes("B:b{x}")
	for _, patch := range []string{
		`{"subjects":null}`, `{"metadata":{"labels":{"role.k8s.com/implied":"false"}}}`, `{"metadata":{"annotations":{"role.k8s.com/via":null}}}`,
	} {
		b.patch(name("B", "b"), patch)
		b.becomes("B:b{x}")
	}
	b.do("-" + name("B", "b"))
	b.becomes("B:b{x}")
	b.patch(name("B", "b"), `{"metadata":{"labels":{"theirs":"kept"}}}`)
	b.Quiet("a label of somebody else", func() {})
	if got := b.get(name("B", "b")).Labels["theirs"]; got != "kept" {
		t.Errorf("label of another author: got %q, want it kept", got)
	}
}

func TestX2AnExplicitBindingThatBearsOurLabelsIsLeftAloneAndReported(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serve()
	b.do("a>b B=a{x} F=b{y}")
	b.becomes("B:b{x}")
	b.patch("B", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"implied-role","role.k8s.com/implied":"true"}}}`)
	b.patch("F", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"implied-role","role.k8s.com/implied":"true"}}}`)
	b.reported("F", "ForeignLabel")
	b.do("-B -a>b")
	b.becomes("")
	if f := b.get("F"); f == nil || len(f.Labels) != 2 || f.Subjects[0].Name != "y" {
		t.Errorf("the foreign binding is %+v", f)
	}
}

// reported waits for an Event about a binding.
func (b *bed) reported(name, reason string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		events, err := b.typed.CoreV1().Events(b.namespace).List(b.T.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == name && e.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("no event %s about %s", reason, name)
	})
}

func TestX3ATakenNameIsReportedAndUsedWhenItIsFree(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serve()
	taken := name("B", "b")
	b.do("a>b b>c")
	b.independent(taken, "b", "mallory")
	b.generates(taken + ":c{mallory}")
	was := b.get(taken)
	b.do("B=a{x}")
	if c := b.condition("a>b", "Synced", "NameConflict"); !strings.Contains(c.Message, taken) {
		t.Errorf("message %q does not say which", c.Message)
	}
	b.reported(taken, "NameConflict")
	b.do("-a>b")
	b.Settled()
	if now := b.get(taken); now.ResourceVersion != was.ResourceVersion {
		t.Errorf("the foreign binding became %+v", now)
	}
	b.do("a>b")
	b.condition("a>b", "Synced", "NameConflict")
	b.do("-" + taken)
	b.becomes("B:b{x} B:c{x}")
}

// independent makes a binding with a reserved name and the label that makes it explicit.
func (b *bed) independent(name, r, who string) {
	b.T.Helper()
	if err := b.create(b.T.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{infer.IndependentLabel: "true"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role(r).Kind(), Name: role(r).Name}, Subjects: []rbacv1.Subject{subject(who)},
	}); err != nil {
		b.T.Fatal(err)
	}
}

func TestX4AGeneratedBindingImpliesNothing(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serve()
	b.do("developer>writer writer>pro B=developer{x}")
	b.becomes("B:pro{x} B:writer{x}")
	b.Quiet("a resync", func() { b.Resync(topology.ImpliedRole) })
}

func TestM1AMissingRoleIsBoundAllTheSame(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serve()
	b.do("a>b B=a{x} c>ClusterRole/later-cluster")
	b.becomes("B:b{x}")
	if c := b.condition("a>b", "ChildRoleFound", "RoleMissing"); c.Status != metav1.ConditionFalse {
		t.Errorf("condition %+v", c)
	}
	b.roles("b")
	b.condition("a>b", "ChildRoleFound", "RoleFound")
	b.condition("c>ClusterRole/later-cluster", "ChildRoleFound", "RoleMissing")
	cluster := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "later-cluster"}}
	if _, err := b.typed.RbacV1().ClusterRoles().Create(t.Context(), cluster, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.condition("c>ClusterRole/later-cluster", "ChildRoleFound", "RoleFound")
	b.Delete(kinds.Roles().In(b.namespace), "b")
	b.condition("a>b", "ChildRoleFound", "RoleMissing")
	b.becomes("B:b{x}")
}

func TestASourceThatIsMadeAnewOwnsWhatFollows(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serve()
	b.do("a>b B=a{x}")
	b.becomes("B:b{x}")
	b.do("-B")
	b.do("B=a{x}")
	b.becomes("B:b{x}")
	b.Settled()
	if got := b.get(name("B", "b")).OwnerReferences; len(got) != 1 || got[0].UID != b.get("B").UID {
		t.Errorf("owners %+v", got)
	}
}

func TestASourceDeletedWhileTheServiceIsDownIsCollectedWithWhatFollows(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	r := b.serve()
	b.do("a>b b>c B1=a{x} B2=a{y}")
	b.becomes("B1:b{x} B1:c{x} B2:b{y} B2:c{y}")
	r.Stop()
	b.do("-B1")
	testenv.Eventually(t, soon, func() error {
		if got := b.generated(); got != "B2:b{y} B2:c{y}" {
			return fmt.Errorf("generated %q", got)
		}
		return nil
	})
	b.Quiet("the next start", func() { b.serve() })
}

func TestChangesWhileTheServiceIsDownAreMadeUpFor(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	r := b.serve()
	b.do("a>b b>c B1=a{x} B2=b{y}")
	b.becomes("B1:b{x} B1:c{x} B2:c{y}")
	r.Stop()
	b.do("-b>c a>d B1=a{x,z} B3=a{u}")
	b.patch(name("B2", "c"), `{"subjects":null}`)
	b.serve()
	b.becomes("B1:b{x,z} B1:d{x,z} B3:b{u} B3:d{u}")
}

var errCut = errors.New("cut on purpose")

// TestAStepThatWasCutOffIsFinished stops the service before or after a call. The call may have succeeded without an
// answer.
func TestAStepThatWasCutOffIsFinished(t *testing.T) {
	for _, after := range []bool{false, true} {
		for call := range 6 {
			b := newBed(t)
			b.Reflector()
			b.do("a>b a>c B1=a{x}")
			var calls, down atomic.Int32
			cut := func(_ context.Context, op string) error {
				changes := strings.HasPrefix(op, "PATCH") || strings.HasPrefix(op, "POST") && strings.HasSuffix(op, "/rolebindings")
				if down.Load() == 1 || changes && int(calls.Add(1)) > call {
					down.Store(1)
					return errCut
				}
				return nil
			}
			b.Kube.FailBefore(cut)
			if after {
				b.Kube.FailBefore(nil)
				b.Kube.FailAfter(cut)
			}
			r := b.serve()
			testenv.Eventually(t, soon, func() error {
				if down.Load() == 0 && int(calls.Load()) <= call {
					return b.consistent() // The pass made fewer calls.
				}
				return nil
			})
			r.Stop()
			b.do("-a>c B2=a{y}")
			b.Kube.FailBefore(nil)
			b.Kube.FailAfter(nil)
			r = b.serve()
			b.becomes("B1:b{x} B2:b{y}")
			r.Stop()
			b.do("-a>b -B1 -B2")
		}
	}
}

// TestW1AStartWithHalfOfTheStreamDeletesNothing removes a kind from NATS. The service must not conclude that its
// objects are gone before the snapshot of every kind is complete.
func TestW1AStartWithHalfOfTheStreamDeletesNothing(t *testing.T) {
	for _, missing := range []kinds.Kind{kinds.ImpliedRoles(), kinds.RoleBindings(), kinds.Roles()} {
		t.Run(missing.Resource, func(t *testing.T) {
			b := newBed(t)
			m := b.Reflector()
			r := b.serve()
			b.do("a>b b>c B1=a{x} B2=b{y}")
			b.becomes("B1:b{x} B1:c{x} B2:c{y}")
			b.Settled()
			r.Stop()
			release := m.Hold()
			stream, err := b.JS.Stream(t.Context(), topology.Changes)
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(topology.ChangesFilter("", missing.GroupResource))); err != nil {
				t.Fatal(err)
			}
			markers, err := b.JS.Stream(t.Context(), topology.Sync)
			if err != nil {
				t.Fatal(err)
			}
			if err := markers.Purge(t.Context(), jetstream.WithPurgeSubject(topology.SyncSubject("", missing.GroupResource))); err != nil {
				t.Fatal(err)
			}
			b.Quiet("a start with half of the stream", func() { b.serve() })
			release()
			m.Replay()
			b.do("B3=a{z}")
			b.becomes("B1:b{x} B1:c{x} B2:c{y} B3:b{z} B3:c{z}")
		})
	}
}

func TestW4NothingIsWrittenWhenNothingChanges(t *testing.T) {
	b := newBed(t)
	m := b.Reflector()
	r := b.serve()
	b.do("a>b b>c c>a c>d x>y B1=a{x} B2=b{y,group:g} B3=x{sa:other:bot}")
	b.becomes("B1:b{x} B1:c{x} B1:d{x} B2:a{y,Group//g} B2:c{y,Group//g} B2:d{y,Group//g} B3:y{ServiceAccount/other/bot}")
	b.Settled()
	for what, do := range map[string]func(){
		"a resync": func() { b.Resync(topology.ImpliedRole) },
		"a replay": m.Replay,
		"a start with everything anew": func() {
			r.Stop()
			if err := b.JS.DeleteConsumer(t.Context(), topology.Changes, topology.ImpliedRole); err != nil {
				t.Fatal(err)
			}
			b.serve()
		},
	} {
		b.Quiet(what, do)
	}
}

func TestANamespaceGoesWithoutTrouble(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serve()
	going := b.in("going")
	going.do("a>b B1=a{x} B2=a{y}")
	going.becomes("B1:b{x} B2:b{y}")
	b.DeleteNamespace("going")
	b.AwaitNamespaceGone("going")
	b.do("a>b B=a{x}")
	b.becomes("B:b{x}")
}

// TestARuleThatIsMadeAnewAtOnceFailsNoPass deletes and recreates rules while their statuses are written.
func TestARuleThatIsMadeAnewAtOnceFailsNoPass(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	var log warnings
	b.serveWith(func(c *impliedrole.Config) {
		c.Embed.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	b.do("a>b B=a{x}")
	b.becomes("B:b{x}")
	for i := range 40 {
		child := role([]string{"c", "b"}[i%2])
		b.do("-a>b")
		b.rule(ruleName("a>b"), role("a"), child, false)
		if i%10 == 9 {
			b.becomes("B:" + child.Name + "{x}")
		}
	}
	if text := log.String(); strings.Contains(text, "failed") {
		t.Error(text)
	}
}

// warnings collects the log of a service.
type warnings struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *warnings) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(data)
}

func (w *warnings) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
