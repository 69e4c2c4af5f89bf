package testenv

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/entail-dev/entail/services/internal/seeds"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	// quietFailures divides the failure rate while the backend converges.
	quietFailures = 5
	// failuresInRound is the minimum number of failed calls per round, on average.
	failuresInRound = 4
)

// Disruption is an event that a service must survive, such as a restart.
type Disruption struct {
	What string
	Do   func(*rand.Rand)
}

// DisruptionSuite makes random changes while calls of a service fail, the service crashes, and its servers restart.
// After each round the backend must hold the state that the objects declare. At the end, a replay, a resync and a
// restart must cause no write.
//
// The environment variable ENTAIL_SEED replaces the seed, and ENTAIL_ROUNDS raises the number of rounds.
type DisruptionSuite struct {
	Bed       *Env
	Reflector *Reflector
	Service   string
	// Serve starts the service.
	Serve func() *RunningService
	// Happen makes one random change, as a user could.
	Happen func(*rand.Rand)
	// AsDeclared returns nil if the backend holds the state that the objects declare. It must not use the service's
	// own code to compute this state.
	AsDeclared func() error
	// Begin runs before each round, and End after it. Both may be nil.
	Begin, End func()
	// Besides lists disruptions that only this service has.
	Besides []Disruption
	// OpenFGA is set for a service that uses OpenFGA.
	OpenFGA bool
	// Search is the service's traffic to OpenSearch, if any.
	Search *Traffic

	// Rounds is the number of rounds. All rounds together have every disruption at least once.
	Rounds int
	// Strikes is the number of disruptions in a round. Zero means all.
	Strikes int
	// Steps is the number of changes before each disruption and after the last one.
	Steps int
	// Pace is the time between two changes.
	Pace time.Duration
	// Within bounds the time until the backend holds the declared state.
	Within time.Duration
	// Failing is the percentage of calls that fail before the server receives them. The same percentage of the executed
	// calls loses its answer.
	Failing int

	failures failureInjector
	running  *RunningService
}

// Run runs the rounds, compares the backend after each, and finally checks that nothing is written without a change.
func (t *DisruptionSuite) Run() {
	t.Bed.T.Helper()
	seed, rounds := seeds.FirstSeed(t.Bed.T), seeds.RoundCount(t.Bed.T, t.Rounds)
	t.Bed.T.Logf("to repeat: ENTAIL_SEED=%d ENTAIL_ROUNDS=%d", seed, rounds)
	random := rand.New(rand.NewPCG(seed, 0))
	strikes := t.allDisruptions()
	inRound := cmp.Or(t.Strikes, len(strikes))
	if rounds*inRound < len(strikes) {
		t.Bed.T.Fatalf("got %d rounds of %d strikes, want room for %d", rounds, inRound, len(strikes))
	}
	t.injectFailures(seed)
	t.running = t.Serve()
	for i := range rounds {
		struck := make([]Disruption, inRound)
		for j := range struck {
			struck[j] = strikes[(i*inRound+j)%len(strikes)]
		}
		t.runRound(random, struck)
	}
	t.failures.percent.Store(0)
	if n := t.failures.count.Load(); t.Failing > 0 && int(n) < failuresInRound*rounds {
		t.Bed.T.Errorf("got %d failed calls in %d rounds, want at least %d in each", n, rounds, failuresInRound)
	}
	t.checkNoWritesAtRest()
}

// injectFailures makes calls of the service fail.
func (t *DisruptionSuite) injectFailures(seed uint64) {
	lines := map[*Traffic]injectedErrors{&t.Bed.Kube.Traffic: kubeErrors(), &t.Bed.OpenFGA.Traffic: openFGAErrors()}
	if t.Search != nil {
		lines[t.Search] = openSearchErrors()
	}
	t.failures.random = rand.New(rand.NewPCG(seed, 1))
	for line, m := range lines {
		t.failures.injectInto(line, m)
	}
}

// allDisruptions returns the disruptions that every service must survive, and those of this service.
func (t *DisruptionSuite) allDisruptions() []Disruption {
	all := []Disruption{
		{"the service dies", func(r *rand.Rand) { t.changeWhileStopped(r, true) }},
		{"the service restarts", func(r *rand.Rand) { t.changeWhileStopped(r, false) }},
		{"everything is published again", func(*rand.Rand) { t.Reflector.Replay() }},
		{"old states are published again", func(*rand.Rand) { t.Reflector.RepublishAll() }},
		{"the bus restarts", func(r *rand.Rand) { t.Bed.NATS.Stop(); t.Happen(r); t.Bed.NATS.Start(t.Bed.T) }},
		{"the durable is deleted", func(*rand.Rand) { t.deleteDurable() }},
		{"the service starts without a durable", func(r *rand.Rand) { t.changeWhileStopped(r, false, t.deleteDurable) }},
		{"the bus is wiped", func(*rand.Rand) { t.Reflector.WipeAndReplay() }},
	}
	if t.OpenFGA {
		all = append(all, Disruption{"OpenFGA restarts", func(*rand.Rand) { t.Bed.OpenFGA.Stop(); t.Bed.OpenFGA.Start(t.Bed.T) }})
	}
	return append(all, t.Besides...)
}

// changeWhileStopped stops the service, makes a change, calls the functions, and starts the service again. If dies is
// true, all its calls fail during the stop, as in a crash.
func (t *DisruptionSuite) changeWhileStopped(r *rand.Rand, dies bool, do ...func()) {
	t.failures.cut.Store(dies)
	t.running.Stop()
	t.failures.cut.Store(false)
	t.Happen(r)
	for _, f := range do {
		f()
	}
	t.running = t.Serve()
}

// deleteDurable deletes the durable consumer of the service, if there is one. Then every message is delivered again.
func (t *DisruptionSuite) deleteDurable() {
	t.Bed.T.Helper()
	if t.hasDurable() {
		t.Bed.DeleteDurable(t.Service)
	}
}

// hasDurable reports whether the service has a durable consumer.
func (t *DisruptionSuite) hasDurable() bool {
	return slices.ContainsFunc(topology.DurableServices(), func(s topology.Service) bool { return s.Name == t.Service })
}

// runRound makes random changes and the given disruptions, and then compares the backend.
func (t *DisruptionSuite) runRound(r *rand.Rand, strikes []Disruption) {
	t.Bed.T.Helper()
	t.failures.percent.Store(int32(t.Failing))
	callIfSet(t.Begin)
	pace := time.NewTicker(t.Pace)
	defer pace.Stop()
	steps := func() {
		for range t.Steps {
			<-pace.C
			t.Happen(r)
		}
	}
	for _, s := range strikes {
		steps()
		t.Bed.T.Log(s.What)
		s.Do(r)
	}
	steps()
	t.failures.percent.Store(int32(t.Failing / quietFailures))
	Eventually(t.Bed.T, t.Within, t.AsDeclared)
	callIfSet(t.End)
}

func callIfSet(f func()) {
	if f != nil {
		f()
	}
}

// checkNoWritesAtRest compares the backend again without failures. Then it checks that no action without a change of
// objects causes a write.
func (t *DisruptionSuite) checkNoWritesAtRest() {
	t.Bed.T.Helper()
	Eventually(t.Bed.T, t.Within, t.AsDeclared)
	if t.hasDurable() {
		t.Bed.AwaitCaughtUp(t.Service)
	}
	t.Bed.AwaitNoCalls()
	if err := t.AsDeclared(); err != nil {
		t.Bed.T.Errorf("at rest: %v", err)
	}
	t.checkNoWrites("a replay", t.Reflector.Replay)
	if !t.hasDurable() {
		return
	}
	t.checkNoWrites("a resync", func() { t.Bed.RequestResync(t.Service) })
	t.checkNoWrites("a start without a durable", func() {
		t.running.Stop()
		t.deleteDurable()
		t.running = t.Serve()
		t.Bed.AwaitCaughtUp(t.Service)
		t.Bed.RequestResync(t.Service)
	})
	if err := t.AsDeclared(); err != nil {
		t.Bed.T.Errorf("after the replays: %v", err)
	}
}

// checkNoWrites does the same as [Env.CheckNoWrites], and also checks OpenSearch.
func (t *DisruptionSuite) checkNoWrites(what string, do func()) {
	t.Bed.T.Helper()
	search := cmp.Or(t.Search, &Traffic{})
	before := search.WritesByOp()
	t.Bed.CheckNoWrites(what, do)
	if writes := SubtractCounts(before, search.WritesByOp()); len(writes) > 0 {
		t.Bed.T.Errorf("%s made writes to OpenSearch: %v", what, writes)
	}
}
