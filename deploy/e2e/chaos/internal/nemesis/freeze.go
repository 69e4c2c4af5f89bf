package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Names of blows that freeze processes.
const (
	// Pause freezes replicas for longer than a takeover needs, like a machine that is short of processors.
	Pause = "pause"
	// FreezeServers freezes OpenFGA, the API server, or a single NATS server.
	FreezeServers = "freeze-servers"
	// FreezeNode freezes one of several NATS servers until the others have come to rest.
	FreezeNode = "freeze-node"
)

func freezes() []Blow {
	return []Blow{
		{Name: Pause, Weight: 6, Nodes: 1, Replicas: 2, draw: drawPause},
		{Name: FreezeServers, Weight: 1, Nodes: 1, Replicas: 1, draw: drawFreezeServers},
		{Name: FreezeNode, Weight: 1, Nodes: 3, Replicas: 1, Lasting: true, draw: drawFreezeNode},
	}
}

// freezeStrike returns the strike that freezes processes for d.
func freezeStrike(names []string, d time.Duration) Strike {
	return Strike{
		Text: fmt.Sprintf("%s for %s", strings.Join(names, ", "), d), For: d,
		Do: func(_ context.Context, t *Target) (func() error, error) {
			struck := processes(t, names)
			for _, p := range struck {
				p.Freeze()
			}
			return func() error {
				for _, p := range struck {
					p.Thaw()
				}
				return nil
			}, nil
		},
	}
}

func drawPause(r *rand.Rand, s Shape) Strike {
	return freezeStrike(replicas(r, s, 2*s.Replicas), between(r, 5500*time.Millisecond, 9*time.Second))
}

func drawFreezeServers(r *rand.Rand, s Shape) Strike {
	names := []string{"openfga", "kube"}
	if s.Nodes == 1 {
		names = append(names, node(0))
	}
	return freezeStrike([]string{names[r.IntN(len(names))]}, between(r, time.Second, 8*time.Second))
}

func drawFreezeNode(r *rand.Rand, s Shape) Strike {
	strike := freezeStrike([]string{node(r.IntN(s.Nodes))}, 0)
	strike.Text = strings.TrimSuffix(strike.Text, " for 0s")
	return strike
}

// healingContext returns a context that never ends, because healing must always run.
func healingContext() context.Context { return context.Background() }
