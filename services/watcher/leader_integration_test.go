//go:build integration

package watcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// leads waits until a replica publishes.
func (b *testEnv) leads(note string) time.Duration {
	b.t.Helper()
	began := time.Now()
	b.apply("probe", note)
	b.becomes()
	return time.Since(began)
}

func TestStandbyTakesOverFromKilledLeader(t *testing.T) {
	b := newTestEnv(t)
	b.order()
	leader := b.start("first")
	b.leads("first leads")
	standby := b.start("second")
	for i := range 30 {
		b.apply(fmt.Sprint("s", i%10), fmt.Sprint(i))
	}
	leader.Kill()
	for i := range 30 {
		b.apply(fmt.Sprint("s", i%10), fmt.Sprint("after ", i))
	}
	b.remove("s3")
	took := b.leads("second leads")
	t.Logf("the standby took over in %s", took)
	if took > 20*time.Second { // 8 s on an idle machine; 30 s if the Lease had to expire.
		t.Errorf("took %s", took)
	}
	standby.Signal(syscall.SIGTERM)
	if err := standby.Wait(); err != nil {
		t.Errorf("ended with %v, want 0", err)
	}
}

func TestFrozenLeaderDoesNotOverwriteAfterDeposition(t *testing.T) {
	b := newTestEnv(t)
	b.order()
	sleeper := b.start("first")
	b.leads("first leads")
	b.start("second")
	for i := range 20 {
		b.apply(fmt.Sprint("s", i), "1")
	}
	sleeper.Signal(syscall.SIGSTOP)
	for i := range 20 {
		b.apply(fmt.Sprint("s", i), "2")
	}
	b.remove("s3")
	b.leads("second leads")
	sleeper.Signal(syscall.SIGCONT)
	for i := range 10 {
		b.apply(fmt.Sprint("s", 10+i), "3")
	}
	b.becomes()
	b.leads("still")
}

func TestStandbyDoesNotReadObjects(t *testing.T) {
	b := newTestEnv(t)
	b.run()
	b.leads("first leads")
	aside := testenv.StartKube(t)
	var mu sync.Mutex
	asked := map[string]int{}
	aside.FailBefore(func(_ context.Context, op string) error {
		mu.Lock()
		defer mu.Unlock()
		asked[op]++
		return nil
	})
	b.runOn(aside.ServiceConfig(t, topology.Watcher))
	testenv.Eventually(t, within, func() error {
		mu.Lock()
		defer mu.Unlock()
		if asked["GET /apis/coordination.k8s.io/v1/namespaces/entail-system/leases/entail-watcher"] < 3 {
			return errors.New("the standby has not looked at the lease three times")
		}
		return nil
	})
	b.apply("a", "1")
	b.becomes()
	mu.Lock()
	defer mu.Unlock()
	for op := range asked {
		if strings.HasSuffix(op, "/stores") {
			t.Errorf("the standby asked %s", op)
		}
	}
}

func TestRestartedLeaderNeedNotWaitForLease(t *testing.T) {
	b := newTestEnv(t)
	began := time.Now()
	first := b.start("same")
	b.leads("first life")
	alone := time.Since(began)
	first.Kill()
	began = time.Now()
	b.start("same")
	b.leads("second life")
	took := time.Since(began)
	t.Logf("led after %s, leads again after %s", alone, took)
	if took > alone+4*time.Second {
		t.Errorf("took %s, want less than the lease", took)
	}
}
