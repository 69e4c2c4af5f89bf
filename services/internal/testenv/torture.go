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

// Strike is one kind of disruption.
type Strike struct {
	What string
	Do   func(*rand.Rand)
}

// Torture makes random changes while calls of a service fail, the service crashes, and its servers restart. After each
// round the backend must hold the state that the objects declare. At the end, no action without a change of objects may
// cause a write.
//
// ENTAIL_SEED replaces the seed. ENTAIL_ROUNDS raises the number of rounds.
type Torture struct {
	Bed       *Env
	Reflector *Reflector
	Service   string
	// Serve starts the service.
	Serve func() *Running
	// Happen makes one random change, as a user could.
	Happen func(*rand.Rand)
	// AsDeclared returns nil when the backend holds the state that the objects declare. It must not use the service's
	// own code for this.
	AsDeclared func() error
	// Begin and End run before and after each round. They may be nil.
	Begin, End func()
	// Besides lists disruptions that are specific to this service.
	Besides []Strike
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

	failures failures
	running  *Running
}

// Run runs the rounds, compares after each of them, and finally checks that nothing writes at rest.
func (t *Torture) Run() {
	t.Bed.T.Helper()
	seed, rounds := seeds.First(t.Bed.T), seeds.Rounds(t.Bed.T, t.Rounds)
	t.Bed.T.Logf("to repeat: ENTAIL_SEED=%d ENTAIL_ROUNDS=%d", seed, rounds)
	random := rand.New(rand.NewPCG(seed, 0))
	strikes := t.allStrikes()
	inRound := cmp.Or(t.Strikes, len(strikes))
	if rounds*inRound < len(strikes) {
		t.Bed.T.Fatalf("got %d rounds of %d strikes, want room for %d", rounds, inRound, len(strikes))
	}
	t.failCalls(seed)
	t.running = t.Serve()
	for i := range rounds {
		struck := make([]Strike, inRound)
		for j := range struck {
			struck[j] = strikes[(i*inRound+j)%len(strikes)]
		}
		t.runRound(random, struck)
	}
	t.failures.percent.Store(0)
	if n := t.failures.count.Load(); t.Failing > 0 && int(n) < failuresInRound*rounds {
		t.Bed.T.Errorf("got %d failed calls in %d rounds, want at least %d in each", n, rounds, failuresInRound)
	}
	t.checkRest()
}

// failCalls connects the failures with the traffic of the service.
func (t *Torture) failCalls(seed uint64) {
	lines := map[*Traffic]mishaps{&t.Bed.Kube.Traffic: kubeMishaps(), &t.Bed.OpenFGA.Traffic: openFGAMishaps()}
	if t.Search != nil {
		lines[t.Search] = searchMishaps()
	}
	t.failures.random = rand.New(rand.NewPCG(seed, 1))
	for line, m := range lines {
		t.failures.strikeLine(line, m)
	}
}

// allStrikes returns the disruptions that every service must survive, and those of this service.
func (t *Torture) allStrikes() []Strike {
	all := []Strike{
		{"the service dies", func(r *rand.Rand) { t.changeWhileStopped(r, true) }},
		{"the service restarts", func(r *rand.Rand) { t.changeWhileStopped(r, false) }},
		{"everything is published again", func(*rand.Rand) { t.Reflector.Replay() }},
		{"old states are published again", func(*rand.Rand) { t.Reflector.Repeat() }},
		{"the bus restarts", func(r *rand.Rand) { t.Bed.NATS.Stop(); t.Happen(r); t.Bed.NATS.Start(t.Bed.T) }},
		{"the durable is deleted", func(*rand.Rand) { t.forgetDurable() }},
		{"the service starts without a durable", func(r *rand.Rand) { t.changeWhileStopped(r, false, t.forgetDurable) }},
		{"the bus is wiped", func(*rand.Rand) { t.Reflector.Wipe() }},
	}
	if t.OpenFGA {
		all = append(all, Strike{"OpenFGA restarts", func(*rand.Rand) { t.Bed.OpenFGA.Stop(); t.Bed.OpenFGA.Start(t.Bed.T) }})
	}
	return append(all, t.Besides...)
}

// changeWhileStopped stops the service, makes a change, calls the functions and starts the service again. For a crash, all its
// calls fail during the stop.
func (t *Torture) changeWhileStopped(r *rand.Rand, dies bool, do ...func()) {
	t.failures.cut.Store(dies)
	t.running.Stop()
	t.failures.cut.Store(false)
	t.Happen(r)
	for _, f := range do {
		f()
	}
	t.running = t.Serve()
}

// forgetDurable deletes the durable of the service, if it has one, so that every message is delivered again.
func (t *Torture) forgetDurable() {
	t.Bed.T.Helper()
	if t.hasDurable() {
		t.Bed.Forget(t.Service)
	}
}

// hasDurable reports whether the service acknowledges messages with a durable, and does not only read them.
func (t *Torture) hasDurable() bool {
	return slices.ContainsFunc(topology.Services(), func(s topology.Service) bool { return s.Name == t.Service })
}

// runRound makes random changes between strikes, and compares.
func (t *Torture) runRound(r *rand.Rand, strikes []Strike) {
	t.Bed.T.Helper()
	t.failures.percent.Store(int32(t.Failing))
	callFunction(t.Begin)
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
	callFunction(t.End)
}

func callFunction(f func()) {
	if f != nil {
		f()
	}
}

// checkRest compares once more without failures, and then allows no write.
func (t *Torture) checkRest() {
	t.Bed.T.Helper()
	Eventually(t.Bed.T, t.Within, t.AsDeclared)
	if t.hasDurable() {
		t.Bed.CaughtUp(t.Service)
	}
	t.Bed.Settled()
	if err := t.AsDeclared(); err != nil {
		t.Bed.T.Errorf("at rest: %v", err)
	}
	t.waitQuiet("a replay", t.Reflector.Replay)
	if !t.hasDurable() {
		return
	}
	t.waitQuiet("a resync", func() { t.Bed.Resync(t.Service) })
	t.waitQuiet("a start without a durable", func() {
		t.running.Stop()
		t.forgetDurable()
		t.running = t.Serve()
		t.Bed.CaughtUp(t.Service)
		t.Bed.Resync(t.Service)
	})
	if err := t.AsDeclared(); err != nil {
		t.Bed.T.Errorf("after the replays: %v", err)
	}
}

// waitQuiet extends [Env.Quiet] by OpenSearch.
func (t *Torture) waitQuiet(what string, do func()) {
	t.Bed.T.Helper()
	search := cmp.Or(t.Search, &Traffic{})
	before := search.WritesByOp()
	t.Bed.Quiet(what, do)
	if writes := CountsSince(before, search.WritesByOp()); len(writes) > 0 {
		t.Bed.T.Errorf("%s made writes to OpenSearch: %v", what, writes)
	}
}
