//go:build integration

package impliedrole_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/internal/seeds"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestMain(m *testing.M) {
	if testenv.PrepareIfSpawned() {
		cfg := impliedrole.Defaults()
		cfg.WithoutGuard = true
		service.Main(topology.ImpliedRole, cfg.BindFlags, func(ctx context.Context) error { return impliedrole.Run(ctx, cfg) })
	}
	testenv.Main(m)
}

func (b *testEnv) spawn() testenv.Process {
	b.T.Helper()
	return testenv.SpawnService(b.T, topology.ImpliedRole, b.NATS, b.Kube, "--log-level", "warn", "--resync", "1h")
}

// TestKilledServiceConvergesAfterRestart kills the service at random moments, also between a change and its
// acknowledgement, while objects change.
func TestKilledServiceConvergesAfterRestart(t *testing.T) {
	b, random := newTestEnv(t), rand.New(rand.NewPCG(seeds.FirstSeed(t), 0))
	m := b.StartReflector()
	b.do("a>b b>c d>c c>ClusterRole/e B0=a{x} B1=b{y} B2=d{x,z}")
	p := b.spawn()
	testenv.Eventually(t, 2*soon, b.consistent)
	recorder := b.recorder()
	for range 8 {
		w := recorder.open()
		for range 12 {
			w.happen(random)
			<-time.After(time.Duration(random.IntN(30)) * time.Millisecond)
		}
		p.Kill()
		for range 3 {
			w.happen(random)
		}
		p = b.spawn()
		for range 5 {
			w.happen(random)
		}
		testenv.Eventually(t, 2*soon, b.consistent)
		w.close()
	}
	p.Kill()
	b.CheckNoWrites("the next start, and a replay", func() {
		b.serve()
		b.AwaitNoCalls()
		m.Replay()
	})
}
