//go:build integration

package tuplesync_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/topology"
)

// asked is what the API server was asked about objects since, but for the Store of IAM: nobody takes that over on the word of the bus.
func (b *iamTestEnv) asked(before map[string]int) map[string]int {
	calls := b.Kube.CallsByOp()
	maps.DeleteFunc(calls, func(op string, n int) bool {
		_, path, _ := strings.Cut(op, " ")
		return n == before[op] || strings.Contains(path, "/leases/") || strings.HasSuffix(path, "/stores/iam") || strings.HasSuffix(path, "/namespaces/kube-system")
	})
	return calls
}

// What OpenFGA holds is read, and not asked for again, by who begins as by who takes everything off the bus once more.
func TestRestartInSyncDoesNotReadOrWrite(t *testing.T) {
	b := newEnvWithRoles(t)
	for name, anew := range map[string]bool{"from where it was": false, "with everything anew": true} {
		t.Run(name, func(t *testing.T) {
			b.AwaitCaughtUp(topology.TupleSync)
			b.AwaitNoCalls()
			b.running.Stop()
			calls, declared := b.Kube.CallsByOp(), b.holds(b.id)
			b.CheckNoWrites("a restart", func() {
				if anew {
					if err := b.JS.DeleteConsumer(t.Context(), topology.Changes, topology.TupleSync); err != nil {
						t.Fatal(err)
					}
				}
				b.running = b.serve()
				awaitReconciled(t, b.running, 0)
				b.AwaitCaughtUp(topology.TupleSync)
			})
			if asked := b.asked(calls); len(asked) > 0 {
				t.Errorf("the API server was asked %v", asked)
			}
			b.awaitTuples(b.id, declared...)
		})
	}
}
