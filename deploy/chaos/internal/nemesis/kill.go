package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/entail-dev/entail/deploy/chaos/internal/system"
)

// Names of blows that end processes.
const (
	// KillServices is kill -9 of one or several replicas.
	KillServices = "kill-services"
	// KillServers is kill -9 of OpenFGA, the API server, or NATS.
	KillServers = "kill-servers"
	// Restart is an end in order and a new start.
	Restart = "restart"
	// Machine is a NATS server and a replica that die together, as on one machine.
	Machine = "machine"
	// Wipe takes away all that NATS has on disk.
	Wipe = "wipe"
	// WipeNode takes away what one of several NATS servers has on disk.
	WipeNode = "wipe-node"
)

func kills() []Blow {
	return []Blow{
		{Name: KillServices, Weight: 3, Nodes: 1, Replicas: 1, draw: drawKillServices},
		{Name: KillServers, Weight: 3, Nodes: 1, Replicas: 1, draw: drawKillServers},
		{Name: Restart, Weight: 2, Nodes: 1, Replicas: 1, draw: drawRestart},
		{
			Name: Machine, Weight: 6, Nodes: 3, Replicas: 2, draw: drawMachine,
			Known: "a standby takes over with a view that has stopped, and writes the old model back",
		},
		{Name: Wipe, Weight: 1, Nodes: 1, Replicas: 1, draw: drawWipe},
		{Name: WipeNode, Weight: 1, Nodes: 3, Replicas: 1, draw: drawWipeNode},
	}
}

// replicas draws some of all replicas of all services, one at least, by their names.
func replicas(r *rand.Rand, s Shape, most int) []string {
	var all []string
	for _, service := range system.Services() {
		for i := range s.Replicas {
			all = append(all, fmt.Sprintf("%s-%d", service.Name, i))
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+r.IntN(min(most, len(all)))]
}

// processes finds processes by their names.
func processes(t *Target, names []string) []*system.Process {
	var found []*system.Process
	for _, name := range names {
		for _, p := range t.System.Processes() {
			if p.Name == name {
				found = append(found, p)
			}
		}
	}
	return found
}

// killed is the strike that kills processes and starts them again.
func killed(names []string, down time.Duration) Strike {
	return Strike{
		Text: fmt.Sprintf("%s for %s", strings.Join(names, ", "), down), For: down,
		Do: func(_ context.Context, t *Target) (func() error, error) {
			for _, p := range processes(t, names) {
				p.Kill()
			}
			return func() error { return startAll(processes(t, names)) }, nil
		},
	}
}

func startAll(all []*system.Process) error {
	var errs []error
	for _, p := range all {
		errs = append(errs, p.Start())
	}
	return errors.Join(errs...)
}

func drawKillServices(r *rand.Rand, s Shape) Strike {
	return killed(replicas(r, s, 3), between(r, 0, 6*time.Second))
}

func drawKillServers(r *rand.Rand, s Shape) Strike {
	names := []string{"openfga"}
	switch r.IntN(4) {
	case 0:
		names = []string{"kube"}
	case 1, 2:
		names = nodes(r, s)
	}
	return killed(names, between(r, 0, 6*time.Second))
}

// nodes draws one NATS server, or several, or all.
func nodes(r *rand.Rand, s Shape) []string {
	names := make([]string, s.Nodes)
	for i := range names {
		names[i] = node(i)
	}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:1+r.IntN(len(names))]
}

func node(i int) string { return fmt.Sprintf("nats-%d", i) }

func drawRestart(r *rand.Rand, s Shape) Strike {
	names := replicas(r, s, 2)
	return Strike{
		Text: strings.Join(names, ", "),
		Do: func(_ context.Context, t *Target) (func() error, error) {
			for _, p := range processes(t, names) {
				if err := p.Stop(); err != nil { // Also with a dependency away.
					return nil, fmt.Errorf("%s ended with %w after SIGTERM", p.Name, err)
				}
				if err := p.Start(); err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
	}
}

// drawMachine: the NATS server first, and while it is down a replica of a service, or one of each.
func drawMachine(r *rand.Rand, s Shape) Strike {
	dead, names := node(r.IntN(s.Nodes)), replicas(r, s, 1)
	if r.IntN(2) == 0 {
		names, dead = nil, node(r.IntN(s.Nodes))
		index := r.IntN(s.Replicas)
		for _, service := range system.Services()[1:] { // The watcher goes on: there is something to miss.
			names = append(names, fmt.Sprintf("%s-%d", service.Name, index))
		}
	}
	gap, down := between(r, 0, 3*time.Second), between(r, 5*time.Second, 10*time.Second)
	return Strike{
		Text: fmt.Sprintf("%s, and after %s %s, for %s", dead, gap, strings.Join(names, ", "), down), For: down,
		Do: func(_ context.Context, t *Target) (func() error, error) {
			all := append(processes(t, []string{dead}), processes(t, names)...)
			all[0].Kill()
			gone := make(chan struct{})
			time.AfterFunc(gap, func() {
				defer close(gone)
				for _, p := range all[1:] {
					p.Kill()
				}
			})
			return func() error { <-gone; return startAll(all) }, nil
		},
	}
}

func drawWipe(r *rand.Rand, s Shape) Strike {
	down := between(r, 0, 3*time.Second)
	return wiped(0, s.Nodes, down, fmt.Sprintf("all of NATS, down for %s", down))
}

func drawWipeNode(r *rand.Rand, s Shape) Strike {
	i, down := r.IntN(s.Nodes), between(r, 0, 3*time.Second)
	return wiped(i, i+1, down, fmt.Sprintf("%s, down for %s", node(i), down))
}

// wiped kills the NATS servers of a range and takes away what they have.
func wiped(from, to int, down time.Duration, text string) Strike {
	return Strike{
		Text: text, For: down,
		Do: func(_ context.Context, t *Target) (func() error, error) {
			struck := t.System.Nodes[from:to]
			for _, p := range struck {
				p.Kill()
			}
			for i := from; i < to; i++ {
				if err := t.System.WipeNode(i); err != nil {
					return nil, err
				}
			}
			return func() error { return startAll(struck) }, nil
		},
	}
}
