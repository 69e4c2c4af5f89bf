package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/checker"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
)

// Names of blows that end processes.
const (
	// KillServices sends SIGKILL to one or several replicas.
	KillServices = "kill-services"
	// KillServers sends SIGKILL to OpenFGA, the API server, or NATS.
	KillServers = "kill-servers"
	// Restart stops replicas in order and starts them again.
	Restart = "restart"
	// Machine kills a NATS server and active replicas, as if their machine died. They stay away until the rest has
	// settled.
	Machine = "machine"
	// Wipe deletes all data of NATS on disk.
	Wipe = "wipe"
	// WipeNode deletes the data of one of several NATS servers on disk.
	WipeNode = "wipe-node"
)

func killFaults() []Fault {
	return []Fault{
		{Name: KillServices, Weight: 3, Nodes: 1, Replicas: 1, draw: drawKillServices},
		{Name: KillServers, Weight: 3, Nodes: 1, Replicas: 1, draw: drawKillServers},
		{Name: Restart, Weight: 2, Nodes: 1, Replicas: 1, draw: drawRestart},
		{Name: Machine, Weight: 20, Nodes: 3, Replicas: 2, Lasting: true, draw: drawMachine},
		{Name: Wipe, Weight: 1, Nodes: 1, Replicas: 1, draw: drawWipe},
		{Name: WipeNode, Weight: 1, Nodes: 3, Replicas: 1, draw: drawWipeNode},
	}
}

// drawReplicas draws between one and most replicas of any services, and returns their names.
func drawReplicas(r *rand.Rand, s SystemShape, most int) []string {
	var all []string
	for _, service := range system.Services() {
		for i := range s.Replicas {
			all = append(all, fmt.Sprintf("%s-%d", service.Name, i))
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+r.IntN(min(most, len(all)))]
}

// processesNamed returns the processes with these names.
func processesNamed(t *FaultTarget, names []string) []*system.Process {
	var found []*system.Process
	for _, name := range names {
		for _, p := range t.System.AllProcesses() {
			if p.Name == name {
				found = append(found, p)
			}
		}
	}
	return found
}

// killStrike returns the strike that kills processes, and starts them again after down.
func killStrike(names []string, down time.Duration) FaultInjection {
	return FaultInjection{
		Text: fmt.Sprintf("%s for %s", strings.Join(names, ", "), down), For: down,
		Do: func(_ context.Context, t *FaultTarget) (func() error, error) {
			for _, p := range processesNamed(t, names) {
				p.Kill()
			}
			return func() error { return startProcesses(processesNamed(t, names)) }, nil
		},
	}
}

func startProcesses(all []*system.Process) error {
	var errs []error
	for _, p := range all {
		errs = append(errs, p.Start())
	}
	return errors.Join(errs...)
}

func drawKillServices(r *rand.Rand, s SystemShape) FaultInjection {
	return killStrike(drawReplicas(r, s, 3), drawDuration(r, 0, 6*time.Second))
}

func drawKillServers(r *rand.Rand, s SystemShape) FaultInjection {
	names := []string{"openfga"}
	switch r.IntN(4) {
	case 0:
		names = []string{"kube"}
	case 1, 2:
		names = drawNodes(r, s)
	}
	return killStrike(names, drawDuration(r, 0, 6*time.Second))
}

// drawNodes draws one, several or all NATS servers.
func drawNodes(r *rand.Rand, s SystemShape) []string {
	names := make([]string, s.Nodes)
	for i := range names {
		names[i] = nodeName(i)
	}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:1+r.IntN(len(names))]
}

func nodeName(i int) string { return fmt.Sprintf("nats-%d", i) }

func drawRestart(r *rand.Rand, s SystemShape) FaultInjection {
	names := drawReplicas(r, s, 2)
	return FaultInjection{
		Text: strings.Join(names, ", "),
		Do: func(_ context.Context, t *FaultTarget) (func() error, error) {
			for _, p := range processesNamed(t, names) {
				if err := p.Stop(); err != nil { // This holds even if a dependency is away.
					return nil, checker.Violation{Kind: checker.Crash, Err: fmt.Errorf("%s ended with %w after SIGTERM", p.Name, err)}
				}
				if err := p.Start(); err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
	}
}

// drawMachine draws a NATS server, and the active replica of one service or of all except the watcher. The server dies
// first, the replicas after a gap. They stay away until the others have come to rest, and return in the same order.
func drawMachine(r *rand.Rand, s SystemShape) FaultInjection {
	dead, reader := r.IntN(s.Nodes), r.IntN(4) > 0
	node := nodeName(dead)
	if reader {
		node = "the NATS server that leads least"
	}
	all := system.Services()
	services := []string{all[r.IntN(len(all))].Name}
	if r.IntN(3) > 0 {
		services = nil
		for _, service := range all[1:] { // The watcher stays, so that changes keep coming.
			services = append(services, service.Name)
		}
	}
	gap, later := drawDuration(r, 0, 4*time.Second), drawDuration(r, 0, 3*time.Second)
	return FaultInjection{
		Text: fmt.Sprintf("%s, and after %s the active replica of %s", node, gap, strings.Join(services, ", ")),
		Do: func(ctx context.Context, t *FaultTarget) (func() error, error) {
			struck := t.System.Nodes[dead]
			if reader {
				struck = t.leastLeadingNode(ctx, struck)
			}
			struck.Kill()
			t.Tell("killed " + struck.Name)
			gone := make(chan []*system.Process, 1)
			time.AfterFunc(gap, func() { gone <- t.killActiveReplicas(ctx, services) })
			return func() error {
				err := struck.Start()
				<-time.After(later)
				return errors.Join(err, startProcesses(<-gone))
			}, nil
		},
	}
}

func drawWipe(r *rand.Rand, s SystemShape) FaultInjection {
	down := drawDuration(r, 0, 3*time.Second)
	return wipeStrike(0, s.Nodes, down, fmt.Sprintf("all of NATS, down for %s", down))
}

func drawWipeNode(r *rand.Rand, s SystemShape) FaultInjection {
	i, down := r.IntN(s.Nodes), drawDuration(r, 0, 3*time.Second)
	return wipeStrike(i, i+1, down, fmt.Sprintf("%s, down for %s", nodeName(i), down))
}

// wipeStrike returns the strike that kills the NATS servers of a range and deletes their data.
func wipeStrike(from, to int, down time.Duration, text string) FaultInjection {
	return FaultInjection{
		Text: text, For: down,
		Do: func(_ context.Context, t *FaultTarget) (func() error, error) {
			struck := t.System.Nodes[from:to]
			for _, p := range struck {
				p.Kill()
			}
			for i := from; i < to; i++ {
				if err := t.System.WipeNode(i); err != nil {
					return nil, err
				}
			}
			return func() error { return startProcesses(struck) }, nil
		},
	}
}
