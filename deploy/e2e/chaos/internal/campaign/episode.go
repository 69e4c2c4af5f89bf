package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/checker"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/history"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/nemesis"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

// episode is one system, from its start to its first finding.
type episode struct {
	cfg      Config
	number   int
	dir      string
	report   *Report
	history  *history.History
	system   *system.System
	world    *checker.CheckedSystem
	monitor  *checker.AccessMonitor
	recorder *checker.AnswerRecorder
	counter  *checker.WriteCounter
	workload *workload.Workload
	nemesis  *nemesis.Nemesis
	target   *nemesis.FaultTarget
	plan     *rand.Rand
	afflicts sync.WaitGroup

	mu sync.Mutex
	// seen lists the violations in the order of their observation.
	seen []checker.Violation
	// struck lists the blows since the last rest.
	struck []string
}

// Streams of random numbers of an episode. Each purpose has its own, so one never changes the numbers of another.
const (
	ofOperations = iota
	ofBlows
	ofPlan
	streamsOfOne
)

func (c Config) newRandom(number, stream int) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, uint64(number*streamsOfOne+stream)))
}

func (c Config) systemShape() nemesis.SystemShape {
	return nemesis.SystemShape{Nodes: c.System.Nodes, Replicas: c.System.Replicas}
}

// runEpisode runs one system until a violation is observed or the campaign is over.
func runEpisode(ctx context.Context, cfg Config, number int, until time.Time, report *Report) (*Finding, error) {
	e, closeAll, err := newEpisode(ctx, cfg, number, report)
	if err != nil {
		return nil, err
	}
	report.Episodes++
	round := e.runRounds(ctx, until)
	if ctx.Err() != nil {
		closeAll()
		return nil, ctx.Err()
	}
	if seen := e.violations(); len(seen) > 0 {
		e.saveState(ctx)
		closeAll()
		return &Finding{Episode: number, Round: round, Blows: e.struck, Violations: seen, Dir: e.dir}, nil
	}
	closeAll()
	return nil, e.discardState() // Not earlier: running servers write there.
}

// runRounds runs rounds while the monitor and the recorder run, and returns the number of the last round. After the
// last round, at rest, it proves that the recorder finds a wrong allow.
func (e *episode) runRounds(ctx context.Context, until time.Time) int {
	watching, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { e.monitor.Run(watching) })
	watcher.Go(func() { e.recorder.Run(watching, e.cfg.System.Replicas) })
	defer watcher.Wait()
	defer stop()
	for round := 1; ; round++ {
		e.report.Rounds++
		if err := e.runRound(ctx, round); err != nil && ctx.Err() == nil {
			e.recordViolation(err)
		}
		failed := ctx.Err() != nil || len(e.violations()) > 0
		over := failed || e.cfg.isOver(until, e.report)
		if over && !failed {
			if err := e.recorder.ProveDetection(ctx); err != nil && ctx.Err() == nil {
				e.recordViolation(err)
			}
		}
		e.report.Looks += e.monitor.TakeCheckCount()
		e.report.Answers.Add(e.recorder.TakeCounts())
		if over {
			return round
		}
	}
}

func newEpisode(ctx context.Context, cfg Config, number int, report *Report) (e *episode, closeAll func(), err error) {
	e = &episode{
		cfg: cfg, number: number, report: report, dir: filepath.Join(cfg.System.Dir, fmt.Sprintf("%d-%d", cfg.Seed, number)),
		workload: workload.New(cfg.newRandom(number, ofOperations)),
		nemesis:  nemesis.New(cfg.newRandom(number, ofBlows), cfg.systemShape(), cfg.Blows), plan: cfg.newRandom(number, ofPlan),
	}
	e.nemesis.BeginWith(cfg.Opening)
	var closers []func()
	backwards := func() {
		for i := range closers {
			closers[len(closers)-1-i]()
		}
	}
	defer func() {
		if err != nil {
			backwards()
		}
	}()
	if err = os.RemoveAll(e.dir); err != nil {
		return nil, nil, err
	}
	if err = os.MkdirAll(e.dir, 0o700); err != nil {
		return nil, nil, err
	}
	log, err := os.Create(filepath.Join(e.dir, "history.log"))
	if err != nil {
		return nil, nil, err
	}
	closers = append(closers, func() { _ = log.Close() })
	e.history = history.New(io.MultiWriter(log, cfg.Out))
	e.history.Addf(history.Check, "seed %d, episode %d, %d NATS servers, %d replicas", cfg.Seed, number, cfg.System.Nodes, cfg.System.Replicas)
	own := cfg.System
	own.Dir = filepath.Join(e.dir, "state")
	if e.system, err = system.Start(ctx, own); err != nil {
		return nil, nil, err
	}
	closers = append(closers, e.system.Close)
	more, err := e.connect(ctx)
	closers = append(closers, more...)
	return e, backwards, err
}

// connect opens direct connections to the servers, and creates the objects that must exist before the first round.
func (e *episode) connect(ctx context.Context) (closers []func(), err error) {
	admin, err := e.system.AdminConfig()
	if err != nil {
		return nil, err
	}
	driver, err := workload.NewDriver(admin)
	if err != nil {
		return nil, err
	}
	openFGA, err := checker.DialOpenFGA(e.system.OpenFGATarget())
	if err != nil {
		return nil, err
	}
	closers = append(closers, openFGA.Close)
	var durables []string
	for _, s := range system.Services() {
		if s.Durable != "" {
			durables = append(durables, s.Durable)
		}
	}
	bus, err := checker.DialNATS(e.system.NATSAdminURLs(), durables)
	if err != nil {
		return closers, err
	}
	closers = append(closers, bus.Close)
	e.world = &checker.CheckedSystem{Driver: driver, FGA: openFGA, Bus: bus, Ready: e.system.CheckReady, Webhooks: e.system.WebhookURLs}
	e.target = &nemesis.FaultTarget{System: e.system, Bus: bus, Driver: driver, Force: e.workload.NextForcedOperation, Before: e.beginOperation}
	e.target.Tell = func(text string) { e.history.Addf(history.Blow, "%s", text) }
	if e.monitor, err = checker.NewAccessMonitor(openFGA, admin, e.system.WebhookURLs, e.recordViolation); err != nil {
		return closers, err
	}
	sources := checker.AnswerSources(e.system.WebhookURLs, e.system.AuthorizerURLs, openFGA)
	e.recorder = checker.NewAnswerRecorder(driver.DynamicClient(), sources, e.recordViolation)
	driver.Wrote = e.recorder.RecordWritten
	if e.counter, err = checker.NewWriteCounter(e.system.OpenFGAMetrics(), admin); err != nil {
		return closers, err
	}
	for _, o := range workload.InitialOperations() {
		if err := driver.Execute(ctx, o); err != nil {
			return closers, err
		}
	}
	return closers, nil
}

// maxSeen bounds the violations that are kept, because one cause may show many times.
const maxSeen = 20

// recordViolation records a violation. It may be called concurrently.
func (e *episode) recordViolation(err error) {
	if errors.Is(err, errSeen) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.seen) < maxSeen {
		v := checker.AsViolation(err)
		e.history.Addf(history.Violation, "%s: %v", v.Kind, v)
		e.seen = append(e.seen, v)
	}
}

// violations returns the violations so far, including every process that ended unexpectedly.
func (e *episode) violations() []checker.Violation {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := slices.Clone(e.seen)
	if err := e.system.FailureErr(); err != nil {
		seen = append(seen, checker.Violation{Kind: checker.Crash, Err: err})
	}
	return seen
}

// beginOperation records that an operation begins, before the API server receives it.
func (e *episode) beginOperation(o workload.Operation) {
	e.history.Addf(history.Operation, "%s", o)
	e.monitor.BeforeOperation(o)
	e.report.Operations++
}

// saveState writes the objects and the goroutines of the services to disk. It ends the services.
func (e *episode) saveState(ctx context.Context) {
	defer func() {
		for _, r := range e.system.Services {
			r.Process.DumpGoroutines()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	snapshot, err := checker.TakeSnapshot(ctx, e.world.Driver)
	if err != nil {
		e.history.Addf(history.Check, "the objects cannot be kept: %v", err)
		return
	}
	data, err := json.MarshalIndent(snapshot, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(e.dir, "objects.json"), data, 0o600)
	}
	if err != nil {
		e.history.Addf(history.Check, "the objects cannot be kept: %v", err)
	}
}

// discardState deletes the state of an episode without a finding, and keeps its history.
func (e *episode) discardState() error { return os.RemoveAll(filepath.Join(e.dir, "state")) }
