package nemesis

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func drawn(seed uint64, shape SystemShape, rounds int) [][]FaultInjection {
	n := New(rand.New(rand.NewPCG(seed, 0)), shape, AllFaults())
	all := make([][]FaultInjection, rounds)
	for i := range all {
		all[i] = n.DrawRound()
	}
	return all
}

func texts(rounds [][]FaultInjection) []string {
	var all []string
	for _, strikes := range rounds {
		for _, s := range strikes {
			all = append(all, s.Blow+" "+s.Text+" "+s.For.String())
		}
	}
	return all
}

func TestFaultsAreDeterministic(t *testing.T) {
	shape := SystemShape{Nodes: 3, Replicas: 2}
	if first, again := texts(drawn(1, shape, 200)), texts(drawn(1, shape, 200)); !slices.Equal(first, again) {
		t.Error("the same seed draws other blows")
	}
	if first, other := texts(drawn(1, shape, 200)), texts(drawn(2, shape, 200)); slices.Equal(first, other) {
		t.Error("another seed draws the same blows")
	}
}

func TestEveryFaultHasTarget(t *testing.T) {
	for name, shape := range map[string]SystemShape{"a cluster": {Nodes: 3, Replicas: 2}, "one of each": {Nodes: 1, Replicas: 1}} {
		t.Run(name, func(t *testing.T) {
			struck := map[string]int{}
			for _, text := range texts(drawn(3, shape, 500)) {
				name, _, _ := strings.Cut(text, " ")
				struck[name]++
			}
			for _, b := range AllFaults() {
				if can := b.Nodes <= shape.Nodes && b.Replicas <= shape.Replicas; can != (struck[b.Name] > 0) {
					t.Errorf("%s struck %d times, and it can: %t", b.Name, struck[b.Name], can)
				}
			}
		})
	}
}

func TestSystemUnderLastingFaultReachesQuiescence(t *testing.T) {
	for i, strikes := range drawn(4, SystemShape{Nodes: 3, Replicas: 2}, 2000) {
		lasting := 0
		for _, s := range strikes {
			if s.Lasting {
				lasting++
			}
		}
		if lasting == 0 {
			continue
		}
		for _, s := range strikes {
			if lasting > 1 || !s.Lasting && (mayStrikeNATS(s.Blow) || s.Blow == Strip) {
				t.Fatalf("round %d: %v", i, texts([][]FaultInjection{strikes}))
			}
		}
	}
}

func TestUndetectableFaultsAreExcluded(t *testing.T) {
	for i, strikes := range drawn(5, SystemShape{Nodes: 1, Replicas: 2}, 5000) {
		struck := map[string]bool{}
		for _, s := range strikes {
			struck[s.Blow] = true
		}
		if struck[LoseTail] && (struck[Strip] || struck[KillServers] || struck[Wipe] || struck[Restore]) {
			t.Fatalf("round %d loses a deletion, or starts NATS meanwhile: %v", i, texts([][]FaultInjection{strikes}))
		}
		if struck[Strip] && (struck[Wipe] || struck[DropStreams] || struck[DropStream] || struck[Limits]) {
			t.Fatalf("round %d strips finalizers and wipes the bus: %v", i, texts([][]FaultInjection{strikes}))
		}
	}
}

func TestFirstRoundsBeginWithOpeningFaults(t *testing.T) {
	opening, _ := FaultsByName([]string{Restore, LoseTail})
	n := New(rand.New(rand.NewPCG(7, 0)), SystemShape{Nodes: 1, Replicas: 2}, AllFaults())
	n.BeginWith(opening)
	for i, want := range opening {
		if got := n.DrawRound()[0]; got.Blow != want.Name || got.Lasting != want.Lasting {
			t.Errorf("round %d begins with %s, want %s", i, got.Blow, want.Name)
		}
	}
	if len(n.DrawRound()) == 0 {
		t.Error("the next round draws no blow")
	}
}

func TestSafeFaultsExcludeKnownFailures(t *testing.T) {
	safe := SurvivedFaults()
	if len(safe) < 8 || len(safe) > len(AllFaults()) {
		t.Errorf("%d of %d blows are safe", len(safe), len(AllFaults()))
	}
	if found, unknown := FaultsByName([]string{KillServices, "earthquake", Pause}); len(found) != 2 || !slices.Equal(unknown, []string{"earthquake"}) {
		t.Errorf("found %v, unknown %v", found, unknown)
	}
}
