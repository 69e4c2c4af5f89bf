//go:build integration

package opensearchsync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/seeds"
	"github.com/entail-dev/entail/services/internal/testenv"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
)

const (
	// fewHistories is for CI. The nightly run has 30 rounds.
	fewHistories = 6
	// roundHistories histories are a round. The first one runs alone, because it disrupts the service.
	roundHistories = 10
	// maxSteps bounds a history without its first and last steps.
	maxSteps = 4
	// restWithin bounds the wait until the service has handled one step. A foreign definition that drops conditions can look
	// like another controller, for which the service waits two minutes.
	restWithin = 3 * time.Minute
)

// At rest OpenSearch holds what objects and other clients declare, and nothing else. See [expectedContent].
func TestOpenSearchEqualsDeclarationsInRandomHistories(t *testing.T) {
	b := newTestEnv(t)
	b.Env.StartReflector()
	s := &histories{testEnv: b}
	s.start()
	var round sync.WaitGroup
	for seed := range seeds.SeedRange(t, uint64(max(fewHistories, roundHistories*seeds.RoundCount(t, 0)))) {
		if disrupted := seed%roundHistories == 0; disrupted {
			round.Wait()
			s.run(seed, disrupted)
		} else {
			round.Go(func() { s.run(seed, disrupted) })
		}
	}
	round.Wait()
	for _, p := range s.ended { // A late write may bring back what was removed.
		if err := p.check(); err != nil {
			t.Errorf("%v, after the end of\n%s", err, strings.Join(p.text, "\n"))
		}
	}
}

// histories runs histories on one set of servers.
type histories struct {
	*testEnv
	running *testenv.RunningService

	mu    sync.Mutex
	ended []*execution
}

func (s *histories) start() {
	s.running = s.serveWith(func(c *opensearchsync.Config) {
		shortenWaits(c)
		c.SecretInterval, c.DriftInterval = time.Second, 3*time.Second
	})
}

// run runs the history of a seed. It ends at the first step that fails, so it prints the shortest prefix that fails.
func (s *histories) run(seed uint64, disrupted bool) {
	s.T.Helper()
	h := newHistory(rand.New(rand.NewPCG(seed, 0)), fmt.Sprintf("h%d-", seed))
	p := &execution{histories: s, history: h, executor: &executor{testEnv: s.testEnv, pruned: map[string]bool{}}, restore: func() {}}
	err := errors.New("a call failed") // It has ended the goroutine.
	defer func() {
		if err != nil {
			s.T.Errorf("ENTAIL_SEED=%d begins with this history: %v, after\n%s", seed, err, strings.Join(p.text, "\n"))
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended = append(s.ended, p)
	}()
	err = p.execute(disrupted)
}

// execution is one history while it runs.
type execution struct {
	*histories
	history  *history
	executor *executor
	text     []string
	// restore ends the foreign definition of a kind.
	restore func()
}

// execute runs the steps, and then deletes everything that objects declare.
func (p *execution) execute(disrupted bool) (err error) {
	defer func() { p.restore() }()
	h := p.history
	step := func(edits func(disruption) []objectEdit, disruptions ...disruption) {
		u := calm
		if disrupted && len(disruptions) > 0 {
			u = pick(h, disruptions...)
		}
		if err == nil {
			err = p.step(u, edits(u))
		}
	}
	step(h.start)
	for range 2 + h.random.IntN(maxSteps-1) {
		step(h.step, calm, restart, crash, outage, definition)
	}
	step(h.fill)
	step(h.cutOff, restart)
	step(h.reconnect)
	step(h.end, calm, restart, crash, outage)
	step(h.reconnect)
	step(h.disconnectAll)
	return err
}

// step applies edits, and waits until OpenSearch matches the reference.
func (p *execution) step(u disruption, all []objectEdit) error {
	p.text = append(p.text, "step, and "+string(u))
	for _, op := range all {
		p.text = append(p.text, "  "+op.text)
	}
	if err := p.disrupted(u, func() (err error) {
		for _, op := range all {
			err = errors.Join(err, op.do(p.executor))
		}
		return err
	}); err != nil {
		return err
	}
	for end := time.Now().Add(restWithin); ; {
		if err := p.check(); err == nil || time.Now().After(end) {
			return err
		}
		<-time.After(300 * time.Millisecond)
	}
}

// check returns an error unless OpenSearch and the objects match the reference.
func (p *execution) check() error {
	o, err := p.executor.observe(p.history)
	if err == nil {
		err = p.history.check(o)
	}
	if err == nil { // Logins are slow, so they come last.
		p.executor.logIn(p.history, o)
		err = p.history.check(o)
	}
	if err == nil {
		p.history.forgetOld(o)
	}
	return err
}

// disrupted applies edits during a disruption.
func (p *execution) disrupted(u disruption, do func() error) error {
	p.restore()
	p.restore = func() {}
	if u == restart || u == crash {
		for _, s := range p.history.spaces {
			s.memory = false
		}
	}
	switch u { //nolint:exhaustive // A calm history begins nothing.
	case restart:
		p.running.Stop()
		defer p.start()
	case crash:
		defer func() {
			dead := func(context.Context, string) error { return errors.New("the service is dead") }
			p.search.FailBefore(dead)
			p.Kube.FailBefore(dead)
			p.running.Stop()
			p.search.FailBefore(nil)
			p.Kube.FailBefore(nil)
			p.start()
		}()
	case definition:
		apiKind := pick(p.history, apiKinds()...)
		p.text = append(p.text, "  a foreign definition of "+apiKind)
		p.executor.pruned[apiKind], p.restore = true, p.prune(kindOf(apiKind))
	case outage:
		defer p.outage(p.history.random.IntN(2) == 0)()
	}
	return do()
}

// outage makes OpenSearch unreachable, or loses its answers to writes.
func (p *execution) outage(answers bool) (end func()) {
	var calls atomic.Int64
	fault := func(_ context.Context, op string) error {
		if calls.Add(1); answers && strings.HasPrefix(op, http.MethodGet) {
			return nil
		}
		return errors.New("the connection breaks")
	}
	if answers {
		p.search.FailAfter(fault)
	} else {
		p.search.FailBefore(fault)
	}
	return func() {
		if slices.ContainsFunc(p.history.spaces, (*historyNamespace).connected) && len(p.history.objects) > 0 {
			testenv.Eventually(p.T, soon, func() error {
				if calls.Load() < 5 { // A cluster without objects gets one call at each comparison.
					return errors.New("the service has made few calls since the outage began")
				}
				return nil
			})
		}
		p.search.FailBefore(nil)
		p.search.FailAfter(nil)
	}
}
