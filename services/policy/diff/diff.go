package diff

import (
	"fmt"
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// Policies returns the changes when one policy replaces another, sorted by class with the worst first, then by type,
// part and name.
func Policies(before, after *policy.Policy) []PolicyChange {
	d := policyDiffer{before: before, after: after}
	for o, n := range pairByName(before.Types, after.Types, func(t *policy.Type) string { return t.Name }) {
		d.diffTypes(o, n)
	}
	for o, n := range pairByName(before.Unions, after.Unions, func(u *policy.Union) string { return u.Name }) {
		d.diffUnions(o, n)
	}
	for o, n := range pairByName(before.Actions, after.Actions, func(a *policy.Action) string { return a.Name }) {
		d.diffActions(o, n)
	}
	slices.SortFunc(d.changes, PolicyChange.compare)
	return d.changes
}

// policyDiffer collects changes. Its methods compare pairs, in which one side may be nil.
type policyDiffer struct {
	before, after *policy.Policy
	changes       []PolicyChange
}

func (d *policyDiffer) addChange(c PolicyChange) { d.changes = append(d.changes, c) }

func (d *policyDiffer) diffTypes(o, n *policy.Type) {
	switch {
	case o == nil:
		d.addChange(PolicyChange{
			Class: Harmless, What: Type, Type: n.Name, Name: n.Name, New: n.Source.PlaceAt(n.At),
			Message: fmt.Sprintf("type %s is new, with %s and %s", n.Name, countText(len(n.Relations), "relation"), countText(len(n.Bindings), "action")),
		})
		return
	case n == nil:
		d.addChange(PolicyChange{
			Class: BreakingForData, What: Type, Type: o.Name, Name: o.Name, Old: o.Source.PlaceAt(o.At),
			Message: fmt.Sprintf("type %s is removed: stored relationships of its resources would be orphaned, and no user would have access to them", o.Name),
		})
		return
	}
	d.diffIDPrefixes(o, n)
	d.diffRelations(o, n)
	d.diffBindings(o, n)
}

func (d *policyDiffer) diffIDPrefixes(o, n *policy.Type) {
	// A type that no document declared has no IDs.
	if o.IDPrefix == n.IDPrefix || o.IsSynthesised() || n.IsSynthesised() {
		return
	}
	d.addChange(PolicyChange{
		Class: BreakingForIDs, What: IDPrefix, Type: n.Name, Name: n.IDPrefix, Old: o.Source.PlaceAt(o.At), New: n.Source.PlaceAt(n.At),
		Message: fmt.Sprintf("ids of type %s begin with %s, no longer with %s: those that exist are not recognised", n.Name, n.IDPrefix, o.IDPrefix),
	})
}

func (d *policyDiffer) diffUnions(o, n *policy.Union) {
	// A new or removed union changes nothing by itself: its effect on relations and bindings is compared there.
	if o == nil || n == nil {
		return
	}
	for was, is := range pairByName(o.Members, n.Members, func(t *policy.Type) string { return t.Name }) {
		c := PolicyChange{Class: Harmless, What: Union, Old: o.Source.PlaceAt(o.At), New: n.Source.PlaceAt(n.At)}
		const effects = "the effects on relations and actions are listed with the types"
		switch {
		case was == nil:
			c.Name = n.Name + ": " + is.Name
			c.Message = fmt.Sprintf("union %s has the new member %s; %s", n.Name, is.Name, effects)
		case is == nil:
			c.Name = n.Name + ": " + was.Name
			c.Message = fmt.Sprintf("union %s has lost its member %s; %s", n.Name, was.Name, effects)
		default:
			continue
		}
		d.addChange(c)
	}
}

func (d *policyDiffer) diffActions(o, n *policy.Action) {
	switch {
	case o == nil:
		d.addChange(PolicyChange{
			Class: Harmless, What: Action, Name: n.Name, New: n.Source.PlaceAt(n.At),
			Message: fmt.Sprintf("action %s is new; the types list its bindings", n.Name),
		})
	case n == nil:
		d.addChange(PolicyChange{
			Class: Harmless, What: Action, Name: o.Name, Old: o.Source.PlaceAt(o.At),
			Message: fmt.Sprintf("action %s is removed; the types list its bindings", o.Name),
		})
	}
}

func countText(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	default:
		return fmt.Sprintf("%d %ss", n, what)
	}
}
