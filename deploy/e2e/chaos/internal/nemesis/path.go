package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
)

// Names of blows on the paths between processes.
const (
	// Cut closes a replica's paths to a server, and refuses new connections.
	Cut = "cut"
	// Hold lets nothing pass on a replica's path to a server for a while, but loses no data.
	Hold = "hold"
	// HalfOpen makes a replica's existing connections to NATS drop all data for good. New connections work.
	HalfOpen = "half-open"
	// Isolate disconnects one NATS server from the others until the rest has settled. Its clients still reach it.
	Isolate = "isolate"
)

func pathFaults() []Fault {
	return []Fault{
		{Name: Cut, Weight: 2, Nodes: 1, Replicas: 1, draw: func(r *rand.Rand, s SystemShape) FaultInjection { return drawPath(r, s, system.Cut) }},
		{Name: Hold, Weight: 3, Nodes: 1, Replicas: 2, draw: func(r *rand.Rand, s SystemShape) FaultInjection { return drawPath(r, s, system.Hold) }},
		{Name: HalfOpen, Weight: 2, Nodes: 1, Replicas: 1, Lasting: true, draw: drawHalfOpen},
		{Name: Isolate, Weight: 2, Nodes: 3, Replicas: 1, Lasting: true, draw: drawIsolate},
	}
}

// drawPath draws the paths of one replica: to NATS, to the API server, to OpenFGA, or all.
func drawPath(r *rand.Rand, s SystemShape, mode system.ProxyMode) FaultInjection {
	name, d := drawReplicas(r, s, 1)[0], drawDuration(r, time.Second, 8*time.Second)
	to := []string{"NATS", "the API server", "everything", "OpenFGA"}
	which := to[r.IntN(len(to))]
	if which == "OpenFGA" && !callsOpenFGA(name) {
		which = to[0]
	}
	return FaultInjection{
		Text: fmt.Sprintf("%s to %s for %s", name, which, d), For: d,
		Do: func(_ context.Context, t *FaultTarget) (func() error, error) {
			struck := linksTo(replicaNamed(t, name), which)
			setModes(struck, mode)
			return func() error { setModes(struck, system.Forward); return nil }, nil
		},
	}
}

func replicaNamed(t *FaultTarget, name string) *system.Replica {
	for _, r := range t.System.Services {
		if r.Process.Name == name {
			return r
		}
	}
	return nil
}

// callsOpenFGA reports whether a replica has a path to OpenFGA.
func callsOpenFGA(name string) bool {
	return slices.ContainsFunc(system.Services(), func(s system.Service) bool { return s.OpenFGA && strings.HasPrefix(name, s.Name+"-") })
}

// linksTo returns a replica's paths to the named server, or all its paths.
func linksTo(r *system.Replica, which string) []*system.Proxy {
	switch which {
	case "NATS":
		return r.NATS
	case "the API server":
		return []*system.Proxy{r.KubeLink}
	case "OpenFGA":
		return []*system.Proxy{r.FGALink}
	}
	return r.AllLinks()
}

func setModes(paths []*system.Proxy, mode system.ProxyMode) {
	for _, p := range paths {
		p.SetMode(mode)
	}
}

func drawHalfOpen(r *rand.Rand, s SystemShape) FaultInjection {
	name := drawReplicas(r, s, 1)[0]
	return FaultInjection{
		Text: name + " to NATS",
		Do: func(_ context.Context, t *FaultTarget) (func() error, error) {
			for _, p := range replicaNamed(t, name).NATS {
				p.MakeHalfOpen()
			}
			return nil, nil
		},
	}
}

func drawIsolate(r *rand.Rand, s SystemShape) FaultInjection {
	i, mode, how := r.IntN(s.Nodes), system.Cut, "cut"
	if r.IntN(2) == 0 {
		mode, how = system.Hold, "silent"
	}
	return FaultInjection{
		Text: fmt.Sprintf("%s, its routes %s", nodeName(i), how),
		Do: func(_ context.Context, t *FaultTarget) (func() error, error) {
			var struck []*system.Proxy
			for from, paths := range t.System.Routes {
				for to, p := range paths {
					if from == i || to == i {
						struck = append(struck, p)
					}
				}
			}
			setModes(struck, mode)
			return func() error { setModes(struck, system.Forward); return nil }, nil
		},
	}
}
