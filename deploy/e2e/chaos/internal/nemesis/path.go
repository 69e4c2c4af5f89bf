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

func paths() []Blow {
	return []Blow{
		{Name: Cut, Weight: 2, Nodes: 1, Replicas: 1, draw: func(r *rand.Rand, s Shape) Strike { return drawPath(r, s, system.Cut) }},
		{Name: Hold, Weight: 3, Nodes: 1, Replicas: 2, draw: func(r *rand.Rand, s Shape) Strike { return drawPath(r, s, system.Hold) }},
		{Name: HalfOpen, Weight: 2, Nodes: 1, Replicas: 1, Lasting: true, draw: drawHalfOpen},
		{Name: Isolate, Weight: 2, Nodes: 3, Replicas: 1, Lasting: true, draw: drawIsolate},
	}
}

// drawPath draws the paths of one replica: to NATS, to the API server, to OpenFGA, or all.
func drawPath(r *rand.Rand, s Shape, mode system.Mode) Strike {
	name, d := replicas(r, s, 1)[0], between(r, time.Second, 8*time.Second)
	to := []string{"NATS", "the API server", "everything", "OpenFGA"}
	which := to[r.IntN(len(to))]
	if which == "OpenFGA" && !callsOpenFGA(name) {
		which = to[0]
	}
	return Strike{
		Text: fmt.Sprintf("%s to %s for %s", name, which, d), For: d,
		Do: func(_ context.Context, t *Target) (func() error, error) {
			struck := links(replica(t, name), which)
			setAll(struck, mode)
			return func() error { setAll(struck, system.Forward); return nil }, nil
		},
	}
}

func replica(t *Target, name string) *system.Replica {
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

// links returns a replica's paths to the named server, or all its paths.
func links(r *system.Replica, which string) []*system.Proxy {
	switch which {
	case "NATS":
		return r.NATS
	case "the API server":
		return []*system.Proxy{r.KubeLink}
	case "OpenFGA":
		return []*system.Proxy{r.FGALink}
	}
	return r.Links()
}

func setAll(paths []*system.Proxy, mode system.Mode) {
	for _, p := range paths {
		p.Set(mode)
	}
}

func drawHalfOpen(r *rand.Rand, s Shape) Strike {
	name := replicas(r, s, 1)[0]
	return Strike{
		Text: name + " to NATS",
		Do: func(_ context.Context, t *Target) (func() error, error) {
			for _, p := range replica(t, name).NATS {
				p.HalfOpen()
			}
			return nil, nil
		},
	}
}

func drawIsolate(r *rand.Rand, s Shape) Strike {
	i, mode, how := r.IntN(s.Nodes), system.Cut, "cut"
	if r.IntN(2) == 0 {
		mode, how = system.Hold, "silent"
	}
	return Strike{
		Text: fmt.Sprintf("%s, its routes %s", node(i), how),
		Do: func(_ context.Context, t *Target) (func() error, error) {
			var struck []*system.Proxy
			for from, paths := range t.System.Routes {
				for to, p := range paths {
					if from == i || to == i {
						struck = append(struck, p)
					}
				}
			}
			setAll(struck, mode)
			return func() error { setAll(struck, system.Forward); return nil }, nil
		},
	}
}
