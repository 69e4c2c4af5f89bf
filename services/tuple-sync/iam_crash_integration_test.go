//go:build integration

package tuplesync_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Nothing is recorded before a write, and none is acknowledged before it is done: whoever comes next finds what was left.
func TestACrashAtAnyPointLeavesNoGrantOfIAM(t *testing.T) {
	for name, c := range map[string]struct {
		// op is the call at which the line is cut, and after whether that is done.
		op    string
		after bool
	}{
		"before tuples are written":                {"Write", false},
		"between a write and its acknowledgement":  {"Write", true},
		"before it is recorded who is a member":    {"carol-staff/status", false},
		"between a member's record and his tuples": {"carol-staff/status", true},
		"between tuples and what is said of them":  {"policybindings/carol/status", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newPeopled(t)
			carol := b.user("carol")
			b.ready(kinds.Users(), "carol", belonging)
			b.CaughtUp(topology.TupleSync)
			before := b.holds(b.id)
			var down atomic.Bool
			cut := func(after bool) testenv.Fault {
				return func(_ context.Context, op string) error {
					if !down.Load() && (after != c.after || !strings.HasSuffix(op, c.op)) {
						return nil
					}
					down.Store(true)
					return errCut
				}
			}
			for _, server := range []*testenv.Traffic{&b.OpenFGA.Traffic, &b.Kube.Traffic} {
				server.FailBefore(cut(false))
				server.FailAfter(cut(true))
			}
			b.join("carol-staff", "carol", b.staff)
			b.bind("carol", "viewer", on(projectType, b.web), user(carol))
			testenv.Eventually(t, soon, func() error {
				if !down.Load() {
					return errors.New("the line is not cut yet")
				}
				return nil
			})
			b.running.Stop()
			b.remove(kinds.GroupMemberships(), "carol-staff") // While nobody is there to see it.
			b.remove(kinds.PolicyBindings(), "carol")
			b.mend()
			b.serve()
			b.CaughtUp(topology.TupleSync)
			b.awaitTuples(b.id, before...)
			b.mayBoth(false, "carol")
		})
	}
}
