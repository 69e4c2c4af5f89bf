//go:build e2e

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/checker"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

const (
	// tooLong bounds a change while a quorum is alive. An idle machine needs at most 15 s, a busy one several times
	// that. Without detection, a dead connection costs minutes.
	tooLong = 90 * time.Second
	// calmWithin bounds the wait until the system is healthy.
	calmWithin = 3 * time.Minute
)

// silence is a fault that closes no connection.
type silence struct {
	// strike silences the i-th NATS server or machine, and returns the function that restores it.
	strike func(s *system.System, i int) (heal func())
	// leading returns the NATS server or machine on which a change depends most.
	leading func(c *changer, t *testing.T) int
}

func silences() map[string]silence {
	return map[string]silence{
		"connections of a machine's replicas are half open": {halfOpenMachine, (*changer).leadingMachine},
		"a machine's replicas are frozen":                   {freezeMachine, (*changer).leadingMachine},
		"a NATS server is frozen": {func(s *system.System, i int) func() {
			s.Nodes[i].Freeze()
			return s.Nodes[i].Thaw
		}, (*changer).leadingNode},
		"a NATS server has lost the others": {func(s *system.System, i int) func() {
			setRoutes(s, i, system.Hold)
			return func() { setRoutes(s, i, system.Forward) }
		}, (*changer).leadingNode},
	}
}

// onMachine returns the replicas of a machine. There may be fewer machines than NATS servers.
func onMachine(s *system.System, i int) []*system.Replica {
	return slices.DeleteFunc(slices.Clone(s.Services), func(r *system.Replica) bool { return r.Index != i%2 })
}

func halfOpenMachine(s *system.System, i int) func() {
	for _, r := range onMachine(s, i) {
		for _, p := range r.NATS {
			p.MakeHalfOpen()
		}
	}
	return func() {}
}

func freezeMachine(s *system.System, i int) func() {
	for _, r := range onMachine(s, i) {
		r.Process.Freeze()
	}
	return func() {
		for _, r := range onMachine(s, i) {
			r.Process.Thaw()
		}
	}
}

// setRoutes sets the mode of every path between a NATS server and the others.
func setRoutes(s *system.System, i int, mode system.ProxyMode) {
	for from, paths := range s.Routes {
		for to, p := range paths {
			if from == i || to == i {
				p.SetMode(mode)
			}
		}
	}
}

// changer changes the tuple of one Store.
type changer struct {
	system  *system.System
	driver  *workload.Driver
	openFGA *checker.OpenFGAClient
	bus     *checker.Bus
	number  int
}

// startChanger starts three NATS servers and two replicas of every service.
func startChanger(t *testing.T) *changer {
	t.Helper()
	root, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, ".tmp", "chaos", t.Name())
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	c := &changer{}
	if c.system, err = system.Start(t.Context(), system.Config{Checkout: root, Dir: dir, Nodes: 3, Replicas: 2}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.system.Close)
	admin, err := c.system.AdminConfig()
	if err != nil {
		t.Fatal(err)
	}
	if c.driver, err = workload.NewDriver(admin); err != nil {
		t.Fatal(err)
	}
	if c.openFGA, err = checker.DialOpenFGA(c.system.OpenFGATarget()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.openFGA.Close)
	if c.bus, err = checker.DialNATS(c.system.NATSAdminURLs(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.bus.Close)
	return c
}

// change replaces the declared tuple by another one.
func (c *changer) change(t *testing.T) {
	t.Helper()
	c.number++
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.platform-mesh.io/v1alpha1", "kind": "Store", "metadata": map[string]any{"name": "measured"},
		"spec": map[string]any{
			"coreModule": "module core\ntype user\ntype doc\n  relations\n    define viewer: [user]\n", "discovery": "None",
			"tuples": []any{map[string]any{"object": fmt.Sprint("doc:", c.number), "relation": "viewer", "user": "user:a"}},
		},
	}}
	if err := c.driver.Execute(t.Context(), workload.Operation{Verb: workload.Apply, Resource: workload.StoreResource(), Object: o}); err != nil {
		t.Fatal(err)
	}
}

// applied returns nil if the store holds exactly the tuple that was declared last.
func (c *changer) applied(ctx context.Context) error {
	want := []checker.Tuple{{Object: fmt.Sprint("doc:", c.number), Relation: "viewer", User: "user:a"}}
	ids, err := c.openFGA.StoreIDs(ctx)
	if err != nil {
		return err
	}
	if len(ids["measured"]) != 1 {
		return fmt.Errorf("OpenFGA has the stores %v", ids)
	}
	held, err := c.openFGA.ReadTuples(ctx, ids["measured"][0])
	if err == nil && !slices.Equal(held, want) {
		err = fmt.Errorf("the store holds %v, want %v", held, want)
	}
	return err
}

// await waits until a condition returns nil, and returns its last error if that takes too long.
func await(ctx context.Context, within time.Duration, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var last error
	for {
		err := condition(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() == nil:
			last = err
		default: // The context ended: keep the error before it.
			return fmt.Errorf("not within %s: %w", within, errors.Join(last, err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func require(t *testing.T, condition func(context.Context) error) {
	t.Helper()
	if err := await(t.Context(), calmWithin, condition); err != nil {
		t.Fatal(err)
	}
}

// leadingNode returns the NATS server that leads the stream of changes.
func (c *changer) leadingNode(t *testing.T) (leading int) {
	t.Helper()
	require(t, func(ctx context.Context) error {
		stream, err := c.bus.JS.Stream(ctx, "ENTAIL_CHANGES")
		if err != nil {
			return err
		}
		cluster := stream.CachedInfo().Cluster
		leading = slices.IndexFunc(c.system.Nodes, func(n *system.Process) bool { return n.Name == cluster.Leader })
		if leading < 0 {
			return fmt.Errorf("the stream has the leader %q", cluster.Leader)
		}
		return nil
	})
	return leading
}

// leadingMachine returns the machine of the replica of tuple-sync that handles a change.
func (c *changer) leadingMachine(t *testing.T) (leading int) {
	t.Helper()
	before := map[*system.Replica]float64{}
	replicas := slices.DeleteFunc(slices.Clone(c.system.Services), func(r *system.Replica) bool { return r.Service.Name != "tuple-sync" })
	for _, r := range replicas {
		require(t, func(ctx context.Context) (err error) {
			before[r], err = r.HandledMessages(ctx)
			return err
		})
	}
	c.change(t)
	require(t, func(ctx context.Context) error {
		for _, r := range replicas {
			if n, err := r.HandledMessages(ctx); err == nil && n > before[r] {
				leading = r.Index
				return nil
			}
		}
		return errors.New("no replica of tuple-sync has handled the change")
	})
	require(t, c.applied)
	return leading
}

// calm waits until every replica is ready and a change is applied.
func (c *changer) calm(t *testing.T) {
	t.Helper()
	require(t, c.system.CheckReady)
	c.change(t)
	require(t, c.applied)
}

// changeUnder strikes a healthy system, and requires that the next change is applied in time.
func (c *changer) changeUnder(t *testing.T, s silence, i int) {
	t.Helper()
	c.calm(t)
	defer s.strike(c.system, i)()
	began := time.Now()
	c.change(t)
	if err := await(t.Context(), tooLong, c.applied); err != nil {
		report(t, checker.Violation{Kind: checker.Late, Err: fmt.Errorf("a change after %d was struck: %w", i, err)})
	}
	t.Logf("%d was struck; the change took %s", i, time.Since(began).Round(100*time.Millisecond))
}

func TestChangeIsAppliedSoonAlthoughTheLeaderFallsSilent(t *testing.T) {
	c := startChanger(t)
	for name, s := range silences() {
		t.Run(name, func(t *testing.T) {
			c.calm(t)
			c.changeUnder(t, s, s.leading(c, t))
		})
	}
}
