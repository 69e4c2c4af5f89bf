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
	// quietFailures divides the rate of failures while the backend converges.
	quietFailures = 5
	// failuresInRound is the minimum of failed calls per round, on average.
	failuresInRound = 4
)

// Disruption is one kind of disruption.
type Disruption struct {
	What string
	Do   func(*rand.Rand)
}

// DisruptionSuite makes random changes while calls of a service fail, the service crashes, and its servers restart. After each
// round the backend must hold the state that the objects declare. At the end, no action without a change of objects may
// cause a write.
//
// ENTAIL_SEED replaces the seed. ENTAIL_ROUNDS raises the number of rounds.
type DisruptionSuite struct {
	Bed       *Env
	Reflector *Reflector
	Service   string
	// Serve starts the service.
	Serve func() *RunningService
	// Happen makes one random change, as a user could.
	Happen func(*rand.Rand)
	// AsDeclared returns nil when the backend holds the state that the objects declare. It must not use the service's
	// own code for this.
	AsDeclared func() error
	// Begin and End run before and after each round. They may be nil.
	Begin, End func()
	// Besides lists disruptions that are specific to this service.
	Besides []Disruption
	// OpenFGA is set for a service that uses it.
	OpenFGA bool
	// Search is the service's traffic to OpenSearch, if it has any.
	Search *Traffic

	// Rounds counts the rounds. Every strike happens at least once in all rounds together.
	Rounds int
	// Strikes counts the strikes of a round. Zero means all.
	Strikes int
	// Steps counts the changes before each strike and after the last one.
	Steps int
	// Pace is the time between two changes.
	Pace time.Duration
	// Within bounds the time until the backend holds the declared state.
	Within time.Duration
	// For the same percentage of calls, the server receives the call, but its answer is lost.
	Failing int

	failures failureInjector
	running  *RunningService
}

// Run runs the rounds, compares after each of them, and finally checks that nothing writes at rest.
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

// injectFailures connects the failures with the traffic of the service.
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

// changeWhileStopped stops the service, makes a change, calls the functions and starts the service again. For a crash, all its
// calls fail during the stop.
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

// deleteDurable deletes the durable of the service, if it has one, so that every message is delivered again.
func (t *DisruptionSuite) deleteDurable() {
	t.Bed.T.Helper()
	if t.hasDurable() {
		t.Bed.DeleteDurable(t.Service)
	}
}

// hasDurable reports whether the service acknowledges messages with a durable, and does not only read them.
func (t *DisruptionSuite) hasDurable() bool {
	return slices.ContainsFunc(topology.DurableServices(), func(s topology.Service) bool { return s.Name == t.Service })
}

// runRound makes random changes between strikes, and compares.
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

// checkNoWritesAtRest compares once more without failures, and then allows no write.
func (t *DisruptionSuite) checkNoWritesAtRest() {
	t.Bed.T.Helper()
	Eventually(t.Bed.T, t.Within, t.AsDeclared)
	if t.hasDurable() {
		t.Bed.AwaitCaughtUp(t.Service)
	}
	t.Bed.AwaitSettled()
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

// checkNoWrites extends [Env.CheckNoWrites] by OpenSearch.
func (t *DisruptionSuite) checkNoWrites(what string, do func()) {
	t.Bed.T.Helper()
	search := cmp.Or(t.Search, &Traffic{})
	before := search.WritesByOp()
	t.Bed.CheckNoWrites(what, do)
	if writes := SubtractCounts(before, search.WritesByOp()); len(writes) > 0 {
		t.Bed.T.Errorf("%s made writes to OpenSearch: %v", what, writes)
	}
}
