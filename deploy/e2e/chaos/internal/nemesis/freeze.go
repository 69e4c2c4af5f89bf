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

func freezeFaults() []Fault {
	return []Fault{
		{Name: Pause, Weight: 6, Nodes: 1, Replicas: 2, draw: drawPause},
		{Name: FreezeServers, Weight: 1, Nodes: 1, Replicas: 1, draw: drawFreezeServers},
		{Name: FreezeNode, Weight: 1, Nodes: 3, Replicas: 1, Lasting: true, draw: drawFreezeNode},
	}
}

// freezeStrike returns the strike that freezes processes for d.
func freezeStrike(names []string, d time.Duration) FaultInjection {
	return FaultInjection{
		Text: fmt.Sprintf("%s for %s", strings.Join(names, ", "), d), For: d,
		Do: func(_ context.Context, t *FaultTarget) (func() error, error) {
			struck := processesNamed(t, names)
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

func drawPause(r *rand.Rand, s SystemShape) FaultInjection {
	return freezeStrike(drawReplicas(r, s, 2*s.Replicas), drawDuration(r, 5500*time.Millisecond, 9*time.Second))
}

func drawFreezeServers(r *rand.Rand, s SystemShape) FaultInjection {
	names := []string{"openfga", "kube"}
	if s.Nodes == 1 {
		names = append(names, nodeName(0))
	}
	return freezeStrike([]string{names[r.IntN(len(names))]}, drawDuration(r, time.Second, 8*time.Second))
}

func drawFreezeNode(r *rand.Rand, s SystemShape) FaultInjection {
	strike := freezeStrike([]string{nodeName(r.IntN(s.Nodes))}, 0)
	strike.Text = strings.TrimSuffix(strike.Text, " for 0s")
	return strike
}

// healingContext returns a context that never ends, because healing must always run.
func healingContext() context.Context { return context.Background() }
