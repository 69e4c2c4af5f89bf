//go:build integration

package impliedrole_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// happen makes one random change that a user could make.
func (w *changePeriod) happen(r *rand.Rand) {
	w.T.Helper()
	letter := func() string { return []string{"a", "b", "c", "d", "ClusterRole/e"}[r.IntN(5)] }
	binding := fmt.Sprintf("B%d", r.IntN(5))
	rule := fmt.Sprintf("r%d", r.IntN(6))
	var who []string
	for _, s := range []string{"x", "y", "z", "group:g", "sa:other:bot"} {
		if r.IntN(2) == 0 {
			who = append(who, s)
		}
	}
	switch r.IntN(10) {
	case 0, 1, 2:
		parent, child := letter(), letter()
		if parent == child {
			return
		}
		w.step("", func() { w.do(fmt.Sprintf("%s:%s>%s", rule, parent, child)) })
	case 3, 4:
		w.step("", func() {
			if err := w.rules().Delete(w.T.Context(), rule, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				w.T.Fatal(err)
			}
		})
	case 5:
		w.step(binding, func() {
			if err := w.typed.RbacV1().RoleBindings(w.namespace).Delete(w.T.Context(), binding, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				w.T.Fatal(err)
			}
		})
	case 6:
		// A user deletes a generated binding, and the service must restore it.
		for _, b := range w.allBindings() {
			if strings.HasPrefix(b.Name, "ir-") && r.IntN(4) == 0 {
				w.step(b.Name, func() {
					err := w.typed.RbacV1().RoleBindings(w.namespace).Delete(w.T.Context(), b.Name, metav1.DeleteOptions{})
					if err != nil && !apierrors.IsNotFound(err) {
						w.T.Fatal(err)
					}
				})
				return
			}
		}
	default:
		role := letter()
		if is := w.get(binding); is != nil {
			role = map[bool]string{true: "ClusterRole/"}[is.RoleRef.Kind == "ClusterRole"] + is.RoleRef.Name
		}
		w.step(binding, func() { w.do(fmt.Sprintf("%s=%s{%s}", binding, role, strings.Join(who, ","))) })
	}
}

// TestImpliedRoleConvergesUnderRandomFaults also checks that no subject lacked a grant of unchanged objects at any
// moment.
func TestImpliedRoleConvergesUnderRandomFaults(t *testing.T) {
	b := newTestEnv(t)
	reflector := b.StartReflector()
	r := b.serve()
	b.do("steady>b S=steady{s,group:s}") // No change touches these.
	b.becomes("S:b{s,Group//s}")
	r.Stop()
	recorder := b.recorder()
	var w *changePeriod
	windows := 0
	torture := &testenv.DisruptionSuite{
		Env: b.Env, Reflector: reflector, Service: topology.ImpliedRole, Serve: b.serve,
		RandomChange: func(r *rand.Rand) { w.happen(r) }, CheckBackend: b.consistent,
		BeforeRound: func() { w = recorder.open(); windows++ },
		AfterRound:  func() { w.close() },
		Rounds:      16, DisruptionsPerRound: 1, ChangesPerDisruption: 15, ChangeInterval: 20 * time.Millisecond, ConvergeTimeout: 6 * soon, FailurePercent: 16,
	}
	torture.Run()
	if recorder.watched < 2*windows {
		t.Errorf("got %d grants that had to be there for a whole window, want at least %d", recorder.watched, 2*windows)
	}
}
