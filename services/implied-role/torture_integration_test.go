//go:build integration

package impliedrole_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	windows       = 12
	stepsInWindow = 15
	torturePace   = 20 * time.Millisecond
)

// nuisance makes calls of the service to the API server fail, before or after they had their effect.
type nuisance struct {
	next    http.RoundTripper
	percent *atomic.Int32
	done    *atomic.Int32
}

// RoundTrip is one request.
func (n nuisance) RoundTrip(r *http.Request) (*http.Response, error) {
	if rand.Int32N(100) >= n.percent.Load() || r.Method == http.MethodPost && !makes(r, "") {
		return n.next.RoundTrip(r)
	}
	n.done.Add(1)
	resource := schema.GroupResource{Resource: "something"}
	switch rand.IntN(6) {
	case 0:
		return answer(r, apierrors.NewConflict(resource, "x", errors.New("on purpose")))
	case 1:
		return answer(r, apierrors.NewTooManyRequestsError("on purpose"))
	case 2:
		return answer(r, apierrors.NewInternalError(errors.New("on purpose")))
	case 3:
		return nil, errCut
	}
	response, err := n.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	if rand.IntN(2) == 0 {
		return answer(r, apierrors.NewTimeoutError("on purpose", 0))
	}
	return nil, errCut
}

func answer(r *http.Request, status apierrors.APIStatus) (*http.Response, error) {
	s := status.Status()
	s.Kind, s.APIVersion = "Status", "v1"
	body, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: int(s.Code), Request: r, Body: io.NopCloser(bytes.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/json"}},
	}, nil
}

// happen does one thing that people do.
func (w *window) happen() {
	w.T.Helper()
	letter := func() string { return []string{"a", "b", "c", "d", "ClusterRole/e"}[rand.IntN(5)] }
	binding := fmt.Sprintf("B%d", rand.IntN(5))
	rule := fmt.Sprintf("r%d", rand.IntN(6))
	var who []string
	for _, s := range []string{"x", "y", "z", "group:g", "sa:other:bot"} {
		if rand.IntN(2) == 0 {
			who = append(who, s)
		}
	}
	switch rand.IntN(10) {
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
		// Somebody meddles with what is generated; the service puts it right.
		for _, b := range w.allBindings() {
			if strings.HasPrefix(b.Name, "ir-") && rand.IntN(4) == 0 {
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
		r := letter()
		if is := w.get(binding); is != nil {
			r = map[bool]string{true: "ClusterRole/"}[is.RoleRef.Kind == "ClusterRole"] + is.RoleRef.Name
		}
		w.step(binding, func() { w.do(fmt.Sprintf("%s=%s{%s}", binding, r, strings.Join(who, ","))) })
	}
}

// TestW2WhateverHappensWhatFollowsIsThere does random things while calls fail, messages
// come again, and the service, the bus and its memory go away: in the end, and whenever
// it is calm, what is generated is what follows, a further look writes nothing, and
// nobody lacked for a moment what follows from what nobody touched.
func TestW2WhateverHappensWhatFollowsIsThere(t *testing.T) {
	b := newBed(t)
	m := b.Reflector()
	var percent, failed atomic.Int32
	nuisances := func(c *impliedrole.Config) {
		c.Embed.Kube.Wrap(func(next http.RoundTripper) http.RoundTripper { return nuisance{next, &percent, &failed} })
	}
	r := b.serveWith(nuisances)
	b.do("steady>b S=steady{s,group:s}") // Nobody touches these.
	b.becomes("S:b{s,Group//s}")
	recorder := b.recorder()
	pace := time.NewTicker(torturePace)
	defer pace.Stop()
	for i := range windows {
		percent.Store(25)
		w := recorder.open()
		for range stepsInWindow {
			<-pace.C
			w.happen()
		}
		switch i % 6 {
		case 1:
			r.Stop()
			r = b.serveWith(nuisances)
		case 2:
			m.Replay()
		case 3:
			b.NATS.Stop()
			b.NATS.Start(t)
		case 4:
			r.Stop()
			w.happen()
			b.forget()
			r = b.serveWith(nuisances)
		case 5:
			b.wipe(m)
		}
		for range stepsInWindow {
			<-pace.C
			w.happen()
		}
		percent.Store(5)
		testbed.Eventually(t, 6*soon, b.consistent)
		w.close()
	}
	percent.Store(0)
	b.CaughtUp(topology.ImpliedRole)
	b.Settled()
	if err := b.consistent(); err != nil {
		t.Error(err)
	}
	t.Logf("%d calls failed, %d grants had to be there for a whole window", failed.Load(), recorder.watched)
	if recorder.watched < 2*windows {
		t.Errorf("only %d grants had to be there for a whole window", recorder.watched)
	}
	if failed.Load() < 50 {
		t.Errorf("only %d calls failed", failed.Load())
	}
	b.Quiet("a replay", m.Replay)
	b.Quiet("a resync", func() { b.Resync(topology.ImpliedRole) })
	b.Quiet("a start with everything anew", func() {
		r.Stop()
		b.forget()
		b.serve()
	})
}

// forget deletes the service's durable: every message comes again.
func (b *bed) forget() {
	b.T.Helper()
	if err := b.JS.DeleteConsumer(b.T.Context(), topology.Changes, topology.ImpliedRole); err != nil {
		b.T.Fatal(err)
	}
}

// wipe deletes the bus's memory and lets it be told everything anew.
func (b *bed) wipe(m *testbed.Reflector) {
	b.T.Helper()
	defer m.Hold()()
	b.retell(m)
}

// retell is wipe while changes are held.
func (b *bed) retell(m *testbed.Reflector) {
	b.T.Helper()
	for _, stream := range []string{topology.Changes, topology.Sync} {
		if err := b.JS.DeleteStream(b.T.Context(), stream); err != nil {
			b.T.Fatal(err)
		}
	}
	if err := topology.Ensure(b.T.Context(), b.JS, 1); err != nil {
		b.T.Fatal(err)
	}
	m.Replay()
}
