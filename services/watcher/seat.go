package watcher

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A standby takes over at most leaseDuration + leaseRetry after the leader died, and at
// once after it stopped in order. A leader that cannot renew stops before another may begin.
const (
	leaseDuration = 8 * time.Second
	leaseRenewal  = 5 * time.Second
	leaseRetry    = time.Second
)

// seat is the one place of the leader among all replicas. That two hold it for a moment
// does no harm: the stream takes nothing older than it has.
type seat struct {
	namespace, name, identity string
	leases                    coordination.CoordinationV1Interface
	log                       *slog.Logger
	leading                   prometheus.Gauge
}

func newLeading(registerer prometheus.Registerer) prometheus.Gauge {
	leading := prometheus.NewGauge(prometheus.GaugeOpts{Name: "entail_watcher_leader", Help: "1 while this replica leads."})
	registerer.MustRegister(leading)
	return leading
}

// randomIdentity tells replicas apart that nobody named.
func randomIdentity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "-" + rand.String(8)
}

// hold runs lead whenever this replica holds the seat, until ctx ends, which is no
// error, or lead fails.
func (s *seat) hold(ctx context.Context, lead func(context.Context) error) error {
	for ctx.Err() == nil {
		if err := s.term(ctx, lead); err != nil {
			return err
		}
	}
	return nil
}

// term waits for the seat, leads, and ends when the seat is lost, ctx ends or lead does.
// The seat is given up only after lead has returned.
func (s *seat) term(ctx context.Context, lead func(context.Context) error) error {
	held, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	begun, over := make(chan context.Context, 1), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: s.name, ReleaseOnCancel: true,
		LeaseDuration: leaseDuration, RenewDeadline: leaseRenewal, RetryPeriod: leaseRetry,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}, Client: s.leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: s.identity},
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
		err = s.lead(ctx, lost, lead)
	}
	release()
	<-over
	return err
}

// lead runs until ctx ends or the seat is lost.
func (s *seat) lead(ctx, lost context.Context, lead func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(lost, cancel)()
	s.leading.Set(1)
	defer s.leading.Set(0)
	s.log.InfoContext(ctx, "leading", slog.String("identity", s.identity))
	defer s.log.InfoContext(ctx, "no longer leading", slog.String("identity", s.identity))
	return lead(ctx)
}
