package watcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// sharedLease is a Lease that all replicas share.
type sharedLease struct {
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	version int
}

// leaseClient is one replica's access to the ballot. A test can cut it.
type leaseClient struct {
	*sharedLease
	identity string
	seen     int
	cut      bool
}

func leases() schema.GroupResource {
	return schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
}

var errCut = errors.New("the API server is away")

func (v *leaseClient) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.cut:
		return nil, nil, errCut
	case v.record == nil:
		return nil, nil, apierrors.NewNotFound(leases(), "entail-watcher")
	}
	v.seen = v.version
	record := *v.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (v *leaseClient) put(record resourcelock.LeaderElectionRecord) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.cut:
		return errCut
	case v.seen != v.version:
		return apierrors.NewConflict(leases(), "entail-watcher", errors.New("somebody was faster"))
	}
	v.version++
	v.record, v.seen = &record, v.version
	return nil
}

func (v *leaseClient) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return v.put(record)
}

func (v *leaseClient) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return v.put(record)
}

func (*leaseClient) RecordEvent(string)  {}
func (v *leaseClient) Identity() string  { return v.identity }
func (*leaseClient) Describe() string    { return "the Lease" }
func (v *leaseClient) sever(broken bool) { v.mu.Lock(); v.cut = broken; v.mu.Unlock() }

// electionCandidate is a candidate in the election, with the times at which it led.
type electionCandidate struct {
	*election
	voter *leaseClient
	// silent is how long NATS has not answered.
	silent time.Duration
	// unread is for how long the API server has answered no read.
	unread time.Duration
	stop   context.CancelFunc
	ended  chan error

	mu    *sync.Mutex // shared by all replicas
	leads *[]string   // the present leaders among all replicas
	began []time.Time
	ends  []time.Time
}

// runElections runs replicas until they are stopped, and fails if two lead at a time.
func runElections(t *testing.T, names ...string) []*electionCandidate {
	t.Helper()
	shared, mu, leads := &sharedLease{}, &sync.Mutex{}, &[]string{}
	all := make([]*electionCandidate, len(names))
	for i, name := range names {
		r := &electionCandidate{voter: &leaseClient{sharedLease: shared, identity: name}, mu: mu, leads: leads, ended: make(chan error, 1)}
		r.election = &election{
			identity: name, lease: &observedLease{Interface: r.voter}, log: slog.New(slog.DiscardHandler), metrics: newMetrics(prometheus.NewRegistry()),
			unanswered: func() time.Duration { mu.Lock(); defer mu.Unlock(); return r.silent },
		}
		r.election.unread = func() time.Duration { mu.Lock(); defer mu.Unlock(); return r.unread }
		ctx, cancel := context.WithCancel(t.Context())
		r.stop = cancel
		go func() {
			r.ended <- r.runElection(ctx, func(ctx context.Context) error { return r.reign(ctx, t) })
		}()
		synctest.Wait()
		all[i] = r
	}
	return all
}

func (r *electionCandidate) reign(ctx context.Context, t *testing.T) error {
	r.mu.Lock()
	*r.leads = append(*r.leads, r.identity)
	if len(*r.leads) > 1 {
		t.Errorf("%v lead at a time", *r.leads)
	}
	r.began = append(r.began, time.Now())
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.leads = (*r.leads)[:len(*r.leads)-1]
	r.ends = append(r.ends, time.Now())
	return nil
}

// awaitLeader returns the leader after some time.
func awaitLeader(all []*electionCandidate, after time.Duration) string {
	<-time.After(after) // in the time of the bubble
	synctest.Wait()
	all[0].mu.Lock()
	defer all[0].mu.Unlock()
	return fmt.Sprint(*all[0].leads)
}

func endAll(t *testing.T, all []*electionCandidate) {
	t.Helper()
	for _, r := range all {
		r.stop()
		if err := <-r.ended; err != nil {
			t.Errorf("%s ended with %v", r.identity, err)
		}
	}
}

func TestElectionKeepsOneLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := runElections(t, "a", "b", "c")
		defer endAll(t, all)
		for range 10 {
			if got := awaitLeader(all, 10*time.Second); got != "[a]" {
				t.Fatalf("%s lead", got)
			}
		}
		for _, r := range all {
			if err := r.lease.Err(); err != nil {
				t.Errorf("%s does not know who leads: %v", r.identity, err)
			}
		}
	})
}

func TestElectionStandbyTakesOverFromStoppedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := runElections(t, "a", "b")
		defer endAll(t, all[1:])
		if got := awaitLeader(all, time.Second); got != "[a]" {
			t.Fatalf("%s lead", got)
		}
		stopped := time.Now()
		all[0].stop()
		if err := <-all[0].ended; err != nil {
			t.Error(err)
		}
		if got := awaitLeader(all, 3*leaseRetry); got != "[b]" {
			t.Fatalf("%s lead %s after the leader stopped", got, time.Since(stopped))
		}
	})
}

func TestElectionLeaderStopsBeforeSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := runElections(t, "a", "b")
		defer endAll(t, all)
		awaitLeader(all, 10*time.Second)
		cut := time.Now()
		all[0].voter.sever(true)
		if got := awaitLeader(all, 8*time.Second); got != "[b]" {
			t.Fatalf("%s lead when the Lease has run out", got)
		}
		ended, began := all[0].ends[0], all[1].began[0]
		if ended.Sub(cut) > leaseDuration || !ended.Before(began) {
			t.Errorf("the first ends %s after it was cut off, the second begins after %s", ended.Sub(cut), began.Sub(cut))
		}
		if err := all[0].lease.Err(); err == nil {
			t.Error("who is cut off is said to know who leads")
		}
		all[0].voter.sever(false)
		if got := awaitLeader(all, 20*time.Second); got != "[b]" {
			t.Errorf("%s lead when the first is back", got)
		}
	})
}

func TestElectionLeaderWithoutNATSResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := runElections(t, "a", "b")
		defer endAll(t, all)
		awaitLeader(all, time.Second)
		all[0].mu.Lock()
		all[0].silent = maxUnanswered
		all[0].mu.Unlock()
		if got := awaitLeader(all, 10*time.Second); got != "[a]" {
			t.Fatalf("%s lead though the bus may still answer", got)
		}
		all[0].mu.Lock()
		all[0].silent = maxUnanswered + 1
		all[0].mu.Unlock()
		if got := awaitLeader(all, abstention); got != "[b]" {
			t.Errorf("%s lead", got)
		}
	})
}

func TestLeaderResignsWhenReadsAreNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := runElections(t, "a", "b")
		defer endAll(t, all)
		for _, test := range []struct {
			unread time.Duration
			want   string
		}{{maxUnread, "[a]"}, {maxUnread + 1, "[b]"}} {
			all[0].mu.Lock()
			all[0].unread = test.unread
			all[0].mu.Unlock()
			if got := awaitLeader(all, abstention); got != test.want {
				t.Errorf("unread for %s: %s lead, want %s", test.unread, got, test.want)
			}
		}
	})
}

func TestElectionLoneLeaderReturnsAfterResigning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := runElections(t, "a")
		defer endAll(t, all)
		awaitLeader(all, time.Second)
		all[0].mu.Lock()
		all[0].silent = maxUnanswered + 1
		all[0].mu.Unlock()
		if got := awaitLeader(all, leaseRetry); got != "[]" {
			t.Errorf("%s lead", got)
		}
		all[0].mu.Lock()
		all[0].silent = 0
		all[0].mu.Unlock()
		if got := awaitLeader(all, 2*abstention+leaseDuration); got != "[a]" || len(all[0].began) < 2 {
			t.Errorf("%s lead", got)
		}
	})
}

func TestElectionLeaderFailureEndsService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &leaseClient{sharedLease: &sharedLease{}, identity: "a"}
		e := &election{
			identity: "a", lease: &observedLease{Interface: r}, log: slog.New(slog.DiscardHandler), metrics: newMetrics(prometheus.NewRegistry()),
			unanswered: func() time.Duration { return 0 }, unread: func() time.Duration { return 0 },
		}
		foreign := errors.New("the bus is of another cluster")
		err := e.runElection(t.Context(), func(context.Context) error {
			if gauge(t, e.metrics.leader) != 1 {
				t.Error("who leads does not tell")
			}
			return foreign
		})
		if !errors.Is(err, foreign) || gauge(t, e.metrics.leader) != 0 {
			t.Errorf("it ended with %v, and leads: %v", err, gauge(t, e.metrics.leader))
		}
		if r.record.HolderIdentity != "" {
			t.Errorf("%s holds the Lease", r.record.HolderIdentity)
		}
	})
}

func gauge(t *testing.T, g prometheus.Gauge) float64 {
	t.Helper()
	var m dto.Metric
	if err := g.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetGauge().GetValue()
}

func TestRandomIdentityIsUnique(t *testing.T) {
	if first, second := randomIdentity(), randomIdentity(); first == second || first == "" {
		t.Errorf("two replicas are %s and %s", first, second)
	}
}
