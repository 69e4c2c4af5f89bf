package watcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher/internal/reflector"
)

// These constants bound the change of leaders. A standby takes over at once after a clean stop of the leader. It
// replaces a dead leader when the lease has expired. A standby checks every 1 to 2.2 times leaseRetry. It may see the
// last renewal that much late, and the expiry that much late again. Together that makes 7.2 s. A leader that cannot
// renew stops before another may begin.
const (
	leaseDuration = 5 * time.Second
	leaseRenewal  = 3500 * time.Millisecond
	leaseRetry    = 500 * time.Millisecond
)

const (
	// maxUnanswered bounds the time without an answer from NATS. After it the leader gives up its lease.
	maxUnanswered = 10 * time.Second
	// maxUnread is how long the API server may leave its reads without one.
	maxUnread = 5 * time.Second
	// abstention is the pause before the replica stands for election again. A standby checks every leaseRetry.
	abstention = 5 * leaseRetry
)

var errUnanswered = errors.New("the bus or the API server does not answer")

// election elects one leader among all replicas. Two leaders for a moment do no harm, because the stream accepts no
// change older than the one it holds.
type election struct {
	identity string
	lease    *observedLease
	// unanswered returns how long NATS has not answered.
	unanswered func() time.Duration
	// unread returns for how long the API server has answered no read on the transport of the watches.
	unread  func() time.Duration
	log     *slog.Logger
	metrics metrics
}

// newObservedLease returns the Lease by which replicas elect their leader.
func newObservedLease(leases coordination.CoordinationV1Interface, cfg Config, identity string) *observedLease {
	return &observedLease{Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: cfg.LeaseNamespace, Name: cfg.LeaseName}, Client: leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}
}

// randomIdentity returns a unique name for a replica without a configured identity.
func randomIdentity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "-" + rand.String(8)
}

// runElection calls lead whenever this replica is the leader. It ends without an error when ctx ends, or with the error
// of lead.
func (e *election) runElection(ctx context.Context, lead func(context.Context) error) error {
	for ctx.Err() == nil {
		err := e.runTerm(ctx, lead)
		if errors.Is(err, errUnanswered) || errors.Is(err, reflector.ErrDeposed) {
			backoff.Sleep(ctx, abstention)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// runTerm waits for the election and leads. It ends when the lease is lost, ctx ends or lead returns. It releases the
// lease only after lead has returned.
func (e *election) runTerm(ctx context.Context, lead func(context.Context) error) error {
	held, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	begun, over := make(chan context.Context, 1), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: topology.Watcher, ReleaseOnCancel: true,
		LeaseDuration: leaseDuration, RenewDeadline: leaseRenewal, RetryPeriod: leaseRetry, Lock: e.lease,
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
		err = e.leadUntilLost(ctx, lost, lead)
	}
	release()
	<-over
	return err
}

// leadUntilLost calls lead until ctx ends or the lease is lost. It returns [errUnanswered] if the replica must give up
// the lease.
func (e *election) leadUntilLost(ctx, lost context.Context, lead func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(lost, func() { cancel(nil) })()
	go e.cancelWhenUnanswered(ctx, cancel)
	e.metrics.leader.Set(1)
	defer e.metrics.leader.Set(0)
	e.log.InfoContext(ctx, "leading", slog.String("identity", e.identity))
	defer e.log.InfoContext(ctx, "no longer leading", slog.String("identity", e.identity))
	err := lead(ctx)
	if err == nil && errors.Is(context.Cause(ctx), errUnanswered) {
		return errUnanswered
	}
	return err
}

// cancelWhenUnanswered cancels a leader that gets no answer from the bus or the API server: a standby's connection may
// be better.
func (e *election) cancelWhenUnanswered(ctx context.Context, cancel context.CancelCauseFunc) {
	for backoff.Sleep(ctx, leaseRetry/2) {
		if silent := e.unanswered(); silent > maxUnanswered {
			e.log.WarnContext(ctx, "the bus does not answer; giving up the lead", slog.Duration("for", silent))
			cancel(errUnanswered)
		}
		if silent := e.unread(); silent > maxUnread {
			e.log.WarnContext(ctx, "the API server does not answer reads; giving up the lead", slog.Duration("for", silent))
			cancel(errUnanswered)
		}
	}
}
