package testenv

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	// quietPeriod is the time without calls after which [Env.AwaitNoCalls] returns.
	quietPeriod = 400 * time.Millisecond
	// settleTimeout bounds each wait, even on a busy machine.
	settleTimeout = 2 * time.Minute
)

// Env holds the real servers for a service, and clients for the test itself. The calls of these clients are not
// counted.
type Env struct {
	T       testing.TB
	Kube    *KubeServer
	NATS    *NATSServer
	OpenFGA *OpenFGAServer
	JS      jetstream.JetStream
	Objects dynamic.Interface
	Typed   kubernetes.Interface

	filled sync.Once
}

// NewEnv starts the servers and creates the streams.
func NewEnv(t testing.TB) *Env {
	t.Helper()
	b := &Env{T: t, Kube: StartKube(t), NATS: StartNATS(t), OpenFGA: LazyOpenFGA(t)}
	b.Objects, b.Typed, b.JS = b.Kube.DynamicClient(t), b.Kube.TypedClient(t), b.NATS.JetStream(t)
	if err := topology.EnsureStreams(t.Context(), b.JS, 1); err != nil {
		t.Fatal(err)
	}
	return b
}

// AwaitNoCalls waits until no call was made for quietPeriod.
func (b *Env) AwaitNoCalls() {
	b.T.Helper()
	state := func() string { return fmt.Sprint(b.OpenFGA.CallsByOp(), b.Kube.WritesByOp()) }
	last, since := state(), time.Now()
	Eventually(b.T, settleTimeout, func() error {
		if now := state(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < quietPeriod {
			return errors.New("still busy")
		}
		return nil
	})
}

// AwaitCaughtUp waits until a service has settled every message. AwaitNoCalls is not enough: the service may retry a
// failed message after up to half a minute, without calls in between.
func (b *Env) AwaitCaughtUp(service string) {
	b.T.Helper()
	AwaitCaughtUp(b.T, b.JS, service)
}

// AwaitCaughtUp does the same as [Env.AwaitCaughtUp] without an Env.
func AwaitCaughtUp(t testing.TB, js jetstream.JetStream, service string) {
	t.Helper()
	Eventually(t, settleTimeout, func() error {
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

// CheckNoWrites calls do, waits until no more calls are made, and reports a test error for each write.
func (b *Env) CheckNoWrites(what string, do func()) {
	b.T.Helper()
	openFGA, kube := b.OpenFGA.WritesByOp(), b.Kube.WritesByOp()
	do()
	b.AwaitNoCalls()
	if f, k := SubtractCounts(openFGA, b.OpenFGA.WritesByOp()), SubtractCounts(kube, b.Kube.WritesByOp()); len(f) != 0 || len(k) != 0 {
		b.T.Errorf("%s made writes to OpenFGA (%v) and to the API server (%v)", what, f, k)
	}
}

// SubtractCounts subtracts the counts in before from now and removes zeros. It changes now.
func SubtractCounts(before, now map[string]int) map[string]int {
	for op, n := range before {
		if now[op] -= n; now[op] == 0 {
			delete(now, op)
		}
	}
	return now
}

// RequestResync makes a service compare everything with its backends.
func (b *Env) RequestResync(service string) {
	b.T.Helper()
	msg := nats.NewMsg(topology.ResyncSubject(service))
	msg.Header.Set(topology.ReplayHeader, "resync")
	if _, err := b.JS.PublishMsg(b.T.Context(), msg); err != nil {
		b.T.Fatal(err)
	}
}
