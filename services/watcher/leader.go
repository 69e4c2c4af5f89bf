package watcher

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A standby takes over at once after the leader stopped in order. One that died is replaced when its
// lease has run out: a standby looks every leaseRetry to 2.2 times that, saw the last renewal that
// much late and finds it expired that much late, which makes 7.2 s. A leader that cannot renew stops
// before another may begin.
const (
	leaseDuration = 5 * time.Second
	leaseRenewal  = 3500 * time.Millisecond
	leaseRetry    = 500 * time.Millisecond
)

// election finds the one leader among all replicas. That two lead for a moment does no
// harm: the stream takes nothing older than it has.
type election struct {
	namespace, name, identity string
	leases                    coordination.CoordinationV1Interface
	log                       *slog.Logger
	metrics                   metrics
}

// randomIdentity tells replicas apart that nobody named.
func randomIdentity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "-" + rand.String(8)
}

// run runs lead whenever this replica is the leader, until ctx ends, which is no error, or
// lead fails.
func (e *election) run(ctx context.Context, lead func(context.Context) error) error {
	for ctx.Err() == nil {
		if err := e.term(ctx, lead); err != nil {
			return err
		}
	}
	return nil
}

// term waits to be elected, leads, and ends when the lease is lost, ctx ends or lead does.
// The lease is given up only after lead has returned.
func (e *election) term(ctx context.Context, lead func(context.Context) error) error {
	held, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	begun, over := make(chan context.Context, 1), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: e.name, ReleaseOnCancel: true,
		LeaseDuration: leaseDuration, RenewDeadline: leaseRenewal, RetryPeriod: leaseRetry,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: e.name}, Client: e.leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.identity},
		},
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(lost context.Context) { begun <- lost },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	go func() {
		defer close(over)
		elector.Run(held)
	}()
	select {
	case <-ctx.Done():
	case <-over:
	case lost := <-begun:
		err = e.lead(ctx, lost, lead)
	}
	release()
	<-over
	return err
}

// lead runs until ctx ends or the lease is lost.
func (e *election) lead(ctx, lost context.Context, lead func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(lost, cancel)()
	e.metrics.leader.Set(1)
	defer e.metrics.leader.Set(0)
	e.log.InfoContext(ctx, "leading", slog.String("identity", e.identity))
	defer e.log.InfoContext(ctx, "no longer leading", slog.String("identity", e.identity))
	return lead(ctx)
}
