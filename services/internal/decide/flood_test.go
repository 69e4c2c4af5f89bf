//go:build !race

package decide

import (
	"fmt"
	"testing"
)

// Whoever owns groups makes anybody a member of as many as he likes, and gives roles to as many: who asks is not gone through
// for each.
func TestWhoIsInManyGroupsIsNotListed(t *testing.T) {
	for _, of := range [][2]int{{flood, 3}, {3, flood}} {
		x, q := flooded(of[0], of[1])
		if why, ok := x.Decide(q); !ok || why.Principal.Name != group(of[0]-1) {
			t.Errorf("of %v groups it is decided by %+v (%v)", of, why, ok)
		}
		if n := testing.AllocsPerRun(10, func() { x.Decide(q) }); n > 0 {
			t.Errorf("a decision of %v groups takes %v allocations", of, n)
		}
		if rights := x.WhatCan(q.Subject); len(rights) != 1 || rights[0].Membership.Name != fmt.Sprint("m", of[0]-1) {
			t.Errorf("what they may is %+v", rights)
		}
		for i := range of[0] {
			x.SetMembership("one", fmt.Sprint("m", i), nil)
		}
		if why, ok := x.Decide(q); ok || len(x.belongings) > 0 {
			t.Errorf("without memberships it is decided by %+v", why)
		}
	}
}
