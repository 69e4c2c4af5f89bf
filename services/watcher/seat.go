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
	namespace, name string
	leases          coordination.CoordinationV1Interface
	log             *slog.Logger
	leading         prometheus.Gauge
}

func newLeading(registerer prometheus.Registerer) prometheus.Gauge {
	leading := prometheus.NewGauge(prometheus.GaugeOpts{Name: "entail_watcher_leader", Help: "1 while this replica leads."})
	registerer.MustRegister(leading)
	return leading
}

// hold runs lead whenever this replica holds the seat, until ctx ends, which is no
// error, or lead fails.
func (s *seat) hold(ctx context.Context, lead func(context.Context) error) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name of this replica: %w", err)
	}
	identity := host + "-" + rand.String(8)
	for ctx.Err() == nil {
		if err := s.term(ctx, identity, lead); err != nil {
			return err
		}
	}
	return nil
}

// term waits for the seat, leads, and ends when the seat is lost, ctx ends or lead does.
func (s *seat) term(ctx context.Context, identity string, lead func(context.Context) error) error {
	ctx, resign := context.WithCancel(ctx)
	defer resign()
	begun, over, result := make(chan context.Context, 1), make(chan struct{}), make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: s.name, ReleaseOnCancel: true,
		LeaseDuration: leaseDuration, RenewDeadline: leaseRenewal, RetryPeriod: leaseRetry,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}, Client: s.leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { begun <- ctx },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	go func() {
		defer resign()
		select {
		case ctx := <-begun:
			s.leading.Set(1)
			s.log.InfoContext(ctx, "leading", slog.String("identity", identity))
			result <- lead(ctx)
			s.leading.Set(0)
			s.log.InfoContext(ctx, "no longer leading", slog.String("identity", identity))
		case <-over:
			result <- nil
		}
	}()
	elector.Run(ctx)
	close(over)
	return <-result
}
