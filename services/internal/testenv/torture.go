package testenv

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/entail-dev/entail/services/internal/fault"
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
	Name string
	Run  func(*rand.Rand)
}

// DisruptionSuite makes random changes while calls of a service fail, the service crashes, and its servers restart.
// After each round the backend must hold the state that the objects declare. At the end, a replay, a resync and a
// restart must cause no write.
//
// The environment variable ENTAIL_SEED replaces the seed, and ENTAIL_ROUNDS raises the number of rounds.
type DisruptionSuite struct {
	Env       *Env
	Reflector *Reflector
	Service   string
	// Serve starts the service.
	Serve func() *RunningService
	// RandomChange makes one random change, as a user could.
	RandomChange func(*rand.Rand)
	// CheckBackend returns nil if the backend holds the state that the objects declare. It must not use the service's
	// own code to compute this state.
	CheckBackend func() error
	// BeforeRound runs before each round, and AfterRound after it. Both may be nil.
	BeforeRound, AfterRound func()
	// ExtraDisruptions lists disruptions that only this service has.
	ExtraDisruptions []Disruption
	// OpenFGA is set for a service that uses OpenFGA.
	OpenFGA bool
	// OpenSearchTraffic is the service's traffic to OpenSearch, if any.
	OpenSearchTraffic *Traffic

	// Rounds is the number of rounds. All rounds together have every disruption at least once.
	Rounds int
	// DisruptionsPerRound is the number of disruptions in a round. Zero means all.
	DisruptionsPerRound int
	// ChangesPerDisruption is the number of changes before each disruption and after the last one.
	ChangesPerDisruption int
	// ChangeInterval is the time between two changes.
	ChangeInterval time.Duration
	// ConvergeTimeout bounds the time until the backend holds the declared state.
	ConvergeTimeout time.Duration
	// FailurePercent is the percentage of calls that fail before the server receives them. The same percentage of the
	// executed calls loses its answer.
	FailurePercent int

	failures failureInjector
	running  *RunningService
}

// Run runs the rounds, compares the backend after each, and finally checks that nothing is written without a change.
func (t *DisruptionSuite) Run() {
	t.Env.T.Helper()
	seed, rounds := seeds.FirstSeed(t.Env.T), seeds.RoundCount(t.Env.T, t.Rounds)
	t.Env.T.Logf("to repeat: ENTAIL_SEED=%d ENTAIL_ROUNDS=%d", seed, rounds)
	random := rand.New(rand.NewPCG(seed, 0))
	strikes := t.allDisruptions()
	inRound := cmp.Or(t.DisruptionsPerRound, len(strikes))
	if rounds*inRound < len(strikes) {
		t.Env.T.Fatalf("got %d rounds of %d strikes, want room for %d", rounds, inRound, len(strikes))
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
	if n := t.failures.count.Load(); t.FailurePercent > 0 && int(n) < failuresInRound*rounds {
		t.Env.T.Errorf("got %d failed calls in %d rounds, want at least %d in each", n, rounds, failuresInRound)
	}
	t.checkNoWritesAtRest()
}

// injectFailures makes calls of the service fail.
func (t *DisruptionSuite) injectFailures(seed uint64) {
	cut := []error{fault.Unavailable(errCut)}
	lines := map[*Traffic]injectedErrors{
		&t.Env.Kube.Traffic: kubeErrors(), &t.Env.OpenFGA.Traffic: {before: cut, after: cut},
	}
	if t.OpenSearchTraffic != nil {
		lines[t.OpenSearchTraffic] = openSearchErrors()
	}
	t.failures.random = rand.New(rand.NewPCG(seed, 1))
	for line, m := range lines {
		line.FailBefore(t.failures.randomFault(m.before))
		line.FailAfter(t.failures.randomFault(m.after))
	}
}

// allDisruptions returns the disruptions that every service must survive, and those of this service.
func (t *DisruptionSuite) allDisruptions() []Disruption {
	all := []Disruption{
		{"the service dies", func(r *rand.Rand) { t.changeWhileStopped(r, true) }},
		{"the service restarts", func(r *rand.Rand) { t.changeWhileStopped(r, false) }},
		{"everything is published again", func(*rand.Rand) { t.Reflector.Replay() }},
		{"old states are published again", func(*rand.Rand) { t.Reflector.RepublishAll() }},
		{"the bus restarts", func(r *rand.Rand) { t.Env.NATS.Stop(); t.RandomChange(r); t.Env.NATS.Start(t.Env.T) }},
		{"the durable is deleted", func(*rand.Rand) { t.deleteDurable() }},
		{"the service starts without a durable", func(r *rand.Rand) { t.changeWhileStopped(r, false, t.deleteDurable) }},
		{"the bus is wiped", func(*rand.Rand) { t.Reflector.WipeAndReplay() }},
	}
	if t.OpenFGA {
		all = append(all, Disruption{"OpenFGA restarts", func(*rand.Rand) { t.Env.OpenFGA.Stop(); t.Env.OpenFGA.Start(t.Env.T) }})
	}
	return append(all, t.ExtraDisruptions...)
}

// changeWhileStopped stops the service, makes a change, calls the functions, and starts the service again. If dies is
// true, all its calls fail during the stop, as in a crash.
func (t *DisruptionSuite) changeWhileStopped(r *rand.Rand, dies bool, do ...func()) {
	t.failures.cut.Store(dies)
	t.running.Stop()
	t.failures.cut.Store(false)
	t.RandomChange(r)
	for _, f := range do {
		f()
	}
	t.running = t.Serve()
}

// deleteDurable deletes the durable consumer of the service, if there is one. Then every message is delivered again.
func (t *DisruptionSuite) deleteDurable() {
	t.Env.T.Helper()
	if t.hasDurable() {
		t.Env.DeleteDurable(t.Service)
	}
}

// hasDurable reports whether the service has a durable consumer.
func (t *DisruptionSuite) hasDurable() bool {
	return slices.ContainsFunc(topology.DurableServices(), func(s topology.Service) bool { return s.Name == t.Service })
}

// runRound makes random changes and the given disruptions, and then compares the backend.
func (t *DisruptionSuite) runRound(r *rand.Rand, disruptions []Disruption) {
	t.Env.T.Helper()
	t.failures.percent.Store(int32(t.FailurePercent))
	callIfSet(t.BeforeRound)
	pace := time.NewTicker(t.ChangeInterval)
	defer pace.Stop()
	steps := func() {
		for range t.ChangesPerDisruption {
			<-pace.C
			t.RandomChange(r)
		}
	}
	for _, s := range disruptions {
		steps()
		t.Env.T.Log(s.Name)
		s.Run(r)
	}
	steps()
	t.failures.percent.Store(int32(t.FailurePercent / quietFailures))
	Eventually(t.Env.T, t.ConvergeTimeout, t.CheckBackend)
	callIfSet(t.AfterRound)
}

func callIfSet(f func()) {
	if f != nil {
		f()
	}
}

// checkNoWritesAtRest compares the backend again without failures. Then it checks that no action without a change of
// objects causes a write.
func (t *DisruptionSuite) checkNoWritesAtRest() {
	t.Env.T.Helper()
	Eventually(t.Env.T, t.ConvergeTimeout, t.CheckBackend)
	if t.hasDurable() {
		t.Env.AwaitCaughtUp(t.Service)
	}
	t.Env.AwaitNoCalls()
	if err := t.CheckBackend(); err != nil {
		t.Env.T.Errorf("at rest: %v", err)
	}
	t.checkNoWrites("a replay", t.Reflector.Replay)
	if !t.hasDurable() {
		return
	}
	t.checkNoWrites("a resync", func() { t.Env.RequestResync(t.Service) })
	t.checkNoWrites("a start without a durable", func() {
		t.running.Stop()
		t.deleteDurable()
		t.running = t.Serve()
		t.Env.AwaitCaughtUp(t.Service)
		t.Env.RequestResync(t.Service)
	})
	if err := t.CheckBackend(); err != nil {
		t.Env.T.Errorf("after the replays: %v", err)
	}
}

// checkNoWrites does the same as [Env.CheckNoWrites], and also checks OpenSearch.
func (t *DisruptionSuite) checkNoWrites(what string, do func()) {
	t.Env.T.Helper()
	search := cmp.Or(t.OpenSearchTraffic, &Traffic{})
	before := search.WritesByOp()
	t.Env.CheckNoWrites(what, do)
	if writes := SubtractCounts(before, search.WritesByOp()); len(writes) > 0 {
		t.Env.T.Errorf("%s made writes to OpenSearch: %v", what, writes)
	}
}
