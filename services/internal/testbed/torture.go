package testbed

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/entail-dev/entail/services/internal/seeds"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	// quietFailures is by how much fewer calls fail while the backend converges.
	quietFailures = 5
	// failuresInRound is how many calls must fail in a round on average.
	failuresInRound = 4
)

// Strike is one thing that goes wrong.
type Strike struct {
	What string
	Do   func(*rand.Rand)
}

// Torture does random things while calls of a service fail, the service crashes, and its servers restart. After each round
// the backend must hold what the objects declare. At the end, nothing that changes no object may cause a write.
//
// ENTAIL_SEED replaces the seed. ENTAIL_ROUNDS raises the number of rounds.
type Torture struct {
	Bed       *Bed
	Reflector *Reflector
	Service   string
	// Serve starts the service.
	Serve func() *Running
	// Happen does one random thing that a person might do.
	Happen func(*rand.Rand)
	// AsDeclared returns nil when the backend holds what the objects declare, by another reading than that of the service.
	AsDeclared func() error
	// Begin and End run before and after each round; they may be nil.
	Begin, End func()
	// Besides are strikes that only this service can suffer.
	Besides []Strike
	// OpenFGA is set for a service that uses it.
	OpenFGA bool
	// Search is the service's traffic to OpenSearch, if it has any.
	Search *Traffic

	// Rounds is how often the backend is compared. Every strike happens at least once in all rounds together.
	Rounds int
	// Strikes is how many happen in a round; zero means all.
	Strikes int
	// Steps is how many things happen before each strike, and after the last one.
	Steps int
	// Pace is the time between two things.
	Pace time.Duration
	// Within bounds the time until the backend holds what is declared.
	Within time.Duration
	// Failing is the percentage of calls that fail before the server sees them; as many answers are lost.
	Failing int

	failures failures
	running  *Running
}

// Run runs the rounds, compares after each of them, and replays everything.
func (t *Torture) Run() {
	t.Bed.T.Helper()
	seed, rounds := seeds.First(t.Bed.T), seeds.Rounds(t.Bed.T, t.Rounds)
	t.Bed.T.Logf("to repeat: ENTAIL_SEED=%d ENTAIL_ROUNDS=%d", seed, rounds)
	random := rand.New(rand.NewPCG(seed, 0))
	strikes := t.strikes()
	inRound := cmp.Or(t.Strikes, len(strikes))
	if rounds*inRound < len(strikes) {
		t.Bed.T.Fatalf("got %d rounds of %d strikes, want room for %d", rounds, inRound, len(strikes))
	}
	t.fail(seed)
	t.running = t.Serve()
	for i := range rounds {
		struck := make([]Strike, inRound)
		for j := range struck {
			struck[j] = strikes[(i*inRound+j)%len(strikes)]
		}
		t.round(random, struck)
	}
	t.failures.percent.Store(0)
	if n := t.failures.count.Load(); t.Failing > 0 && int(n) < failuresInRound*rounds {
		t.Bed.T.Errorf("got %d failed calls in %d rounds, want at least %d in each", n, rounds, failuresInRound)
	}
	t.rest()
}

// fail lets the failures decide about calls of the service.
func (t *Torture) fail(seed uint64) {
	lines := map[*Traffic]mishaps{&t.Bed.Kube.Traffic: kubeMishaps(), &t.Bed.OpenFGA.Traffic: openFGAMishaps()}
	if t.Search != nil {
		lines[t.Search] = searchMishaps()
	}
	t.failures.random = rand.New(rand.NewPCG(seed, 1))
	for line, m := range lines {
		t.failures.strike(line, m)
	}
}

// strikes returns what every service must survive, and what only this one can suffer.
func (t *Torture) strikes() []Strike {
	all := []Strike{
		{"the service dies", func(r *rand.Rand) { t.without(r, true) }},
		{"the service restarts", func(r *rand.Rand) { t.without(r, false) }},
		{"everything is published again", func(*rand.Rand) { t.Reflector.Replay() }},
		{"old states are published again", func(*rand.Rand) { t.Reflector.Repeat() }},
		{"the bus restarts", func(r *rand.Rand) { t.Bed.NATS.Stop(); t.Happen(r); t.Bed.NATS.Start(t.Bed.T) }},
		{"the durable is deleted", func(*rand.Rand) { t.forget() }},
		{"the service starts without a durable", func(r *rand.Rand) { t.without(r, false, t.forget) }},
		{"the bus is wiped", func(*rand.Rand) { t.Reflector.Wipe() }},
	}
	if t.OpenFGA {
		all = append(all, Strike{"OpenFGA restarts", func(*rand.Rand) { t.Bed.OpenFGA.Stop(); t.Bed.OpenFGA.Start(t.Bed.T) }})
	}
	return append(all, t.Besides...)
}

// without ends the service, lets something happen, does the rest, and starts the service. A service that dies gets no answer any more.
func (t *Torture) without(r *rand.Rand, dies bool, do ...func()) {
	t.failures.cut.Store(dies)
	t.running.Stop()
	t.failures.cut.Store(false)
	t.Happen(r)
	for _, f := range do {
		f()
	}
	t.running = t.Serve()
}

// forget deletes the durable of the service, if it has one: every message is delivered again.
func (t *Torture) forget() {
	t.Bed.T.Helper()
	if t.settles() {
		t.Bed.Forget(t.Service)
	}
}

// settles reports whether the service settles messages, and does not just read them.
func (t *Torture) settles() bool {
	return slices.ContainsFunc(topology.Services(), func(s topology.Service) bool { return s.Name == t.Service })
}

// round does random things amid strikes, and compares.
func (t *Torture) round(r *rand.Rand, strikes []Strike) {
	t.Bed.T.Helper()
	t.failures.percent.Store(int32(t.Failing))
	call(t.Begin)
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
	call(t.End)
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// rest compares once more when nothing fails, and then allows no write.
func (t *Torture) rest() {
	t.Bed.T.Helper()
	Eventually(t.Bed.T, t.Within, t.AsDeclared)
	if t.settles() {
		t.Bed.CaughtUp(t.Service)
	}
	t.Bed.Settled()
	if err := t.AsDeclared(); err != nil {
		t.Bed.T.Errorf("at rest: %v", err)
	}
	t.quiet("a replay", t.Reflector.Replay)
	if !t.settles() {
		return
	}
	t.quiet("a resync", func() { t.Bed.Resync(t.Service) })
	t.quiet("a start without a durable", func() {
		t.running.Stop()
		t.forget()
		t.running = t.Serve()
		t.Bed.CaughtUp(t.Service)
		t.Bed.Resync(t.Service)
	})
	if err := t.AsDeclared(); err != nil {
		t.Bed.T.Errorf("after the replays: %v", err)
	}
}

// quiet is [Bed.Quiet] for OpenSearch, too.
func (t *Torture) quiet(what string, do func()) {
	t.Bed.T.Helper()
	search := cmp.Or(t.Search, &Traffic{})
	before := search.WritesByOp()
	t.Bed.Quiet(what, do)
	if writes := CountsSince(before, search.WritesByOp()); len(writes) > 0 {
		t.Bed.T.Errorf("%s made writes to OpenSearch: %v", what, writes)
	}
}
