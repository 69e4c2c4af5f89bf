package testbed

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	// calm is how long nothing must happen for everything to be settled.
	calm = 400 * time.Millisecond
	// settleWithin is for the busiest of tests.
	settleWithin = 2 * time.Minute
)

// Bed is the surroundings of a service, all real, and the test's own hands, whose
// calls are not counted.
type Bed struct {
	T       testing.TB
	Kube    *KubeServer
	NATS    *NATSServer
	OpenFGA *OpenFGAServer
	JS      jetstream.JetStream
	Objects dynamic.Interface
}

// NewBed starts servers, and the streams on the bus.
func NewBed(t testing.TB) *Bed {
	t.Helper()
	b := &Bed{T: t, Kube: Kube(t), NATS: NATS(t), OpenFGA: OpenFGA(t)}
	b.Objects, b.JS = b.Kube.Objects(t), b.NATS.JetStream(t)
	if err := topology.Ensure(t.Context(), b.JS, 1); err != nil {
		t.Fatal(err)
	}
	return b
}

// Settled waits until nothing has been called for a while.
func (b *Bed) Settled() {
	b.T.Helper()
	state := func() string { return fmt.Sprint(b.OpenFGA.CallsByOp(), b.Kube.WritesByOp()) }
	last, since := state(), time.Now()
	Eventually(b.T, settleWithin, func() error {
		if now := state(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < calm {
			return errors.New("still busy")
		}
		return nil
	})
}

// CaughtUp waits until a service has settled every message: what failed is tried again after up to half a
// minute, and until then nothing happens.
func (b *Bed) CaughtUp(service string) {
	b.T.Helper()
	CaughtUp(b.T, b.JS, service)
}

// CaughtUp is [Bed.CaughtUp] where there is no bed.
func CaughtUp(t testing.TB, js jetstream.JetStream, service string) {
	t.Helper()
	Eventually(t, settleWithin, func() error {
		c, err := js.Consumer(t.Context(), topology.Changes, service)
		if err != nil {
			return err
		}
		if i := c.CachedInfo(); i.AckFloor.Consumer == 0 || i.NumPending+uint64(i.NumAckPending) > 0 {
			return fmt.Errorf("%s: pending %d, unacknowledged %d", service, i.NumPending, i.NumAckPending)
		}
		return nil
	})
}

// Quiet runs what should change nothing, waits, and wants no write to have happened.
func (b *Bed) Quiet(what string, do func()) {
	b.T.Helper()
	openFGA, kube := b.OpenFGA.WritesByOp(), b.Kube.WritesByOp()
	do()
	b.Settled()
	if f, k := added(openFGA, b.OpenFGA.WritesByOp()), added(kube, b.Kube.WritesByOp()); len(f) != 0 || len(k) != 0 {
		b.T.Errorf("%s made writes to OpenFGA (%v) and to the API server (%v)", what, f, k)
	}
}

// added is what was counted after before.
func added(before, now map[string]int) map[string]int {
	for op, n := range before {
		if now[op] -= n; now[op] == 0 {
			delete(now, op)
		}
	}
	return now
}

// Resync makes a service compare everything with its backends.
func (b *Bed) Resync(service string) {
	b.T.Helper()
	msg := nats.NewMsg(topology.WakeSubject(service))
	msg.Header.Set(topology.ReplayHeader, "resync")
	if _, err := b.JS.PublishMsg(b.T.Context(), msg); err != nil {
		b.T.Fatal(err)
	}
}

// Resource is the objects of a kind.
func (b *Bed) Resource(kind kinds.Kind) dynamic.NamespaceableResourceInterface {
	return b.Objects.Resource(kind.Served())
}

// Delete deletes an object as a person would.
func (b *Bed) Delete(kind kinds.Kind, name string) {
	b.T.Helper()
	if err := b.Resource(kind).Delete(b.T.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.T.Fatal(err)
	}
}

// List lists the objects of a kind, or of one namespace; none of one that is not served.
func (b *Bed) List(kind kinds.Kind) *unstructured.UnstructuredList {
	b.T.Helper()
	list, err := b.Resource(kind).Namespace(kind.Namespace).List(b.T.Context(), metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return &unstructured.UnstructuredList{}
	}
	if err != nil {
		b.T.Fatal(err)
	}
	return list
}

// ApplyStatus makes status a part of an object's, as another service would.
func (b *Bed) ApplyStatus(service string, kind kinds.Kind, name string, status any) {
	b.T.Helper()
	patch, err := json.Marshal(map[string]any{
		"apiVersion": kind.Served().GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{"name": name}, "status": status,
	})
	if err != nil {
		b.T.Fatal(err)
	}
	options := metav1.PatchOptions{FieldManager: service, Force: new(true)}
	if _, err := b.Resource(kind).Patch(b.T.Context(), name, types.ApplyPatchType, patch, options, "status"); err != nil {
		b.T.Fatal(err)
	}
}

// SetFinalizers gives an object these finalizers, and no others.
func (b *Bed) SetFinalizers(kind kinds.Kind, namespace, name string, finalizers ...string) {
	b.T.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
	if err != nil {
		b.T.Fatal(err)
	}
	if _, err := b.Resource(kind).Namespace(namespace).Patch(b.T.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		b.T.Fatal(err)
	}
}

// AwaitReleased waits until an object has no finalizers.
func (b *Bed) AwaitReleased(kind kinds.Kind, namespace, name string) {
	b.T.Helper()
	Eventually(b.T, settleWithin, func() error {
		u, err := b.Resource(kind).Namespace(namespace).Get(b.T.Context(), name, metav1.GetOptions{})
		if err == nil && len(u.GetFinalizers()) > 0 {
			err = fmt.Errorf("%s %s has the finalizers %v", kind.Kind, name, u.GetFinalizers())
		}
		return err
	})
}
