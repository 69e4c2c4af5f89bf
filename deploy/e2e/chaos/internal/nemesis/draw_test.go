package nemesis

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
)

func TestDrawFollowsWeights(t *testing.T) {
	draw := func(*rand.Rand, SystemShape) FaultInjection { return FaultInjection{} }
	n := New(rand.New(rand.NewPCG(1, 1)), SystemShape{Nodes: 1, Replicas: 1}, []Fault{
		{Name: "often", Weight: 3, draw: draw}, {Name: "never", draw: draw}, {Name: "seldom", Weight: 1, draw: draw}, {Name: "elsewhere", Weight: 50, Nodes: 3, draw: draw},
	})
	drawn := map[string]int{}
	for range 4000 {
		drawn[n.drawFault().Name]++
	}
	if drawn["never"] > 0 || drawn["elsewhere"] > 0 || drawn["often"] < 2*drawn["seldom"] || drawn["often"] > 4*drawn["seldom"] {
		t.Errorf("drawn are %v", drawn)
	}
}

func TestDrawDurationStaysWithinBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		if d := drawDuration(r, time.Second, 3*time.Second); d < time.Second || d > 3*time.Second || d%time.Millisecond != 0 {
			t.Fatalf("drawn is %s", d)
		}
	}
}

func TestPathsLeadToNamedServers(t *testing.T) {
	nats, kube, fga := &system.Proxy{}, &system.Proxy{}, &system.Proxy{}
	r := &system.Replica{NATS: []*system.Proxy{nats}, KubeLink: kube, FGALink: fga}
	for which, want := range map[string][]*system.Proxy{
		"NATS": {nats}, "the API server": {kube}, "OpenFGA": {fga}, "everything": {nats, kube, fga},
	} {
		got := linksTo(r, which)
		if len(got) != len(want) {
			t.Fatalf("%s: %d paths", which, len(got))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: path %d leads elsewhere", which, i)
			}
		}
	}
}

func TestOpenFGACutAffectsItsClientsOnly(t *testing.T) {
	for name, want := range map[string]bool{"store-sync-0": true, "tuple-sync-1": true, "implied-role-0": false, "watcher-0": false} {
		if callsOpenFGA(name) != want {
			t.Errorf("%s calls OpenFGA: %t", name, !want)
		}
	}
	for i, strikes := range drawn(6, SystemShape{Nodes: 3, Replicas: 2}, 3000) {
		for _, s := range strikes {
			if strings.Contains(s.Text, "to OpenFGA") && !callsOpenFGA(strings.Fields(s.Text)[0]) {
				t.Fatalf("round %d: %s %s", i, s.Blow, s.Text)
			}
		}
	}
}

func TestShortFaultEndsWithinRound(t *testing.T) {
	for i, strikes := range drawn(8, SystemShape{Nodes: 3, Replicas: 2}, 2000) {
		for _, s := range strikes {
			if s.For < 0 || s.For > 30*time.Second || s.Lasting && s.For > 0 || s.Do == nil || s.Text == "" {
				t.Fatalf("round %d: %s %q for %s, lasting %t", i, s.Blow, s.Text, s.For, s.Lasting)
			}
		}
	}
}
