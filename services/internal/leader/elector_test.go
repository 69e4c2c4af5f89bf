package leader_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestElectorMakesOneReplicaLeader(t *testing.T) {
	b := newTestStreams(t)
	first := b.start(b.connect())
	b.deliver()
	await(t, "the first replica leads", first.IsLeader)
	other := b.start(b.connect())
	if left, err := first.LeaseRemaining(); err != nil || left > takeover.LeaseLifetime {
		t.Errorf("got %s left, %v", left, err)
	}
	if other.IsLeader() {
		t.Error("both replicas lead")
	}
	first.resign()
	if first.IsLeader() {
		t.Error("a replica leads after it resigned")
	}
	b.deliver()
	await(t, "the other replica leads", other.IsLeader)
}

func TestElectorWaitsUntilLeaseOfPredecessorHasExpired(t *testing.T) {
	b := newTestStreams(t)
	sent := b.publishLease("killed")
	replica := b.start(b.connect())
	b.deliver()
	await(t, "the replica leads", replica.IsLeader)
	if waited := time.Since(sent); waited < takeover.LeaseLifetime {
		t.Errorf("got a leader after %s, want %s at least", waited, takeover.LeaseLifetime)
	}
}

func TestElectorThatResignsEarlyLeavesWaitToSuccessor(t *testing.T) {
	b := newTestStreams(t)
	sent := b.publishLease("killed")
	first := b.start(b.connect())
	b.deliver()
	await(t, "the first replica has a lease", func() bool { return b.leaseHolder() != "killed" })
	first.resign()
	next := b.start(b.connect())
	b.deliver()
	await(t, "the next replica leads", next.IsLeader)
	if waited := time.Since(sent); waited < takeover.LeaseLifetime {
		t.Errorf("got a leader after %s, want %s at least", waited, takeover.LeaseLifetime)
	}
}

// A second term that begins while the first still waits must not shorten the wait.
func TestElectorWaitsFullTimeInTermThatReplacesUnopenedTerm(t *testing.T) {
	b := newTestStreams(t)
	sent := b.publishLease("killed")
	replica := b.start(b.connect())
	b.deliver()
	await(t, "the replica has a lease", func() bool { return b.leaseHolder() != "killed" })
	b.repin()
	b.deliver()
	await(t, "the replica leads", replica.IsLeader)
	if waited := time.Since(sent); waited < takeover.LeaseLifetime {
		t.Errorf("got a leader after %s, want %s at least", waited, takeover.LeaseLifetime)
	}
	for until := time.Now().Add(takeover.LeaseLifetime); time.Now().Before(until); <-time.After(time.Millisecond) {
		if !replica.IsLeader() {
			t.Fatal("the term ended with the preparation of the one before")
		}
	}
}

func TestElectorReportsTermThatItCannotOpen(t *testing.T) {
	b := newTestStreams(t)
	cut := b.connect()
	cut.Conn().Close()
	replica := b.start(cut)
	if err := replica.Err(); err != nil {
		t.Errorf("before its term: %v", err)
	}
	b.deliver()
	await(t, "the replica reports that it is unsure", func() bool { return replica.Err() != nil })
	if replica.IsLeader() {
		t.Error("the replica leads without a lease")
	}
}

func TestElectorIsReadyAsLeaderAndAsStandby(t *testing.T) {
	b := newTestStreams(t)
	one, other := b.start(b.connect()), b.start(b.connect()) // Either may become the leader.
	b.deliver()
	await(t, "one replica leads", func() bool { return one.IsLeader() || other.IsLeader() })
	for _, replica := range []boundReplica{one, other} {
		if err := replica.Err(); err != nil {
			t.Error(err)
		}
	}
}
