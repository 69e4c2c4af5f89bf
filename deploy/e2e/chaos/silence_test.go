//go:build e2e

package main

import (
	"context"
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

// silences are what nobody is told of: a path, a server or a replica says nothing any more. Each heals with what it returns.
func silences() map[string]func(s *system.System, i int) (heal func()) {
	return map[string]func(s *system.System, i int) (heal func()){
		"connections of a machine's replicas are half open": func(s *system.System, i int) func() {
			for _, r := range s.Services {
				for _, p := range r.NATS {
					if r.Index == i%2 {
						p.HalfOpen()
					}
				}
			}
			return func() {}
		},
		"a NATS server is frozen": func(s *system.System, i int) func() {
			s.Nodes[i].Freeze()
			return s.Nodes[i].Thaw
		},
		"a NATS server has lost the others": func(s *system.System, i int) func() {
			routes := func(mode system.Mode) {
				for from, paths := range s.Routes {
					for to, p := range paths {
						if from == i || to == i {
							p.Set(mode)
						}
					}
				}
			}
			routes(system.Hold)
			return func() { routes(system.Forward) }
		},
		"a machine's replicas are frozen": func(s *system.System, i int) func() {
			var frozen []*system.Process
			for _, r := range s.Services {
				if r.Index == i%2 {
					r.Process.Freeze()
					frozen = append(frozen, r.Process)
				}
			}
			return func() {
				for _, p := range frozen {
					p.Thaw()
				}
			}
		},
	}
}

// changer changes tuples of one Store.
type changer struct {
	t       *testing.T
	driver  *workload.Driver
	openFGA *checker.OpenFGA
	number  int
}

// change declares another tuple in the place of the last.
func (c *changer) change() {
	c.t.Helper()
	c.number++
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.platform-mesh.io/v1alpha1", "kind": "Store", "metadata": map[string]any{"name": "measured"},
		"spec": map[string]any{
			"coreModule": "module core\ntype user\ntype doc\n  relations\n    define viewer: [user]\n", "discovery": "None",
			"tuples": []any{map[string]any{"object": fmt.Sprint("doc:", c.number), "relation": "viewer", "user": "user:a"}},
		},
	}}
	if err := c.driver.Do(c.t.Context(), workload.Operation{Verb: workload.Apply, Resource: workload.Stores(), Object: o}); err != nil {
		c.t.Fatal(err)
	}
}

// applied waits until the store holds what was declared last, and nothing else.
func (c *changer) applied(within time.Duration) {
	c.t.Helper()
	want := []checker.Tuple{{Object: fmt.Sprint("doc:", c.number), Relation: "viewer", User: "user:a"}}
	c.await(within, func(ctx context.Context) error {
		ids, err := c.openFGA.Stores(ctx)
		if err != nil || len(ids["measured"]) != 1 {
			return fmt.Errorf("stores %v, %w", ids, err)
		}
		held, err := c.openFGA.Tuples(ctx, ids["measured"][0])
		if err == nil && !slices.Equal(held, want) {
			err = fmt.Errorf("the store holds %v, want %v", held, want)
		}
		return err
	})
}

func (c *changer) await(within time.Duration, what func(context.Context) error) {
	c.t.Helper()
	deadline := time.Now().Add(within)
	for err := what(c.t.Context()); err != nil; err = what(c.t.Context()) {
		if time.Now().After(deadline) {
			c.t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// tooLong is how long a changed tuple must not take while a quorum lives. On a machine that is busy
// with nothing else it takes 15 s at most; whoever waits for a connection to be found dead takes minutes.
const tooLong = 40 * time.Second

func TestAChangeIsAppliedSoonThoughSomethingFallsSilent(t *testing.T) {
	root, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, ".tmp", "chaos", t.Name())
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	s, err := system.Start(t.Context(), system.Config{Checkout: root, Dir: dir, Nodes: 3, Replicas: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	admin, err := s.Admin()
	if err != nil {
		t.Fatal(err)
	}
	c := &changer{t: t}
	if c.driver, err = workload.NewDriver(admin); err != nil {
		t.Fatal(err)
	}
	if c.openFGA, err = checker.DialOpenFGA(s.OpenFGATarget()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.openFGA.Close)
	for name, strike := range silences() {
		t.Run(name, func(t *testing.T) {
			for i := range s.Nodes {
				c.t = t
				c.await(time.Minute, s.Ready)
				c.change()
				c.applied(time.Minute)
				heal := strike(s, i)
				began := time.Now()
				c.change()
				c.applied(time.Minute)
				took := time.Since(began)
				heal()
				if t.Logf("after %s", took.Round(100*time.Millisecond)); took > tooLong {
					t.Errorf("a change took %s", took)
				}
			}
		})
	}
}
