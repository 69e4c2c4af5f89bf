package diff

import (
	"fmt"
	"slices"

	"github.com/entail-dev/entail/services/policy"
)

// Policies returns the changes when one policy replaces another, sorted by class with the worst first, then by type,
// part and name.
func Policies(before, after *policy.Policy) []Change {
	d := differ{before: before, after: after}
	for o, n := range pairByName(before.Types, after.Types, func(t *policy.Type) string { return t.Name }) {
		d.types(o, n)
	}
	for o, n := range pairByName(before.Unions, after.Unions, func(u *policy.Union) string { return u.Name }) {
		d.unions(o, n)
	}
	for o, n := range pairByName(before.Actions, after.Actions, func(a *policy.Action) string { return a.Name }) {
		d.actions(o, n)
	}
	slices.SortFunc(d.changes, Change.compare)
	return d.changes
}

// differ collects changes. Its methods compare pairs, in which one side may be nil.
type differ struct {
	before, after *policy.Policy
	changes       []Change
}

func (d *differ) add(c Change) { d.changes = append(d.changes, c) }

func (d *differ) types(o, n *policy.Type) {
	switch {
	case o == nil:
		d.add(Change{
			Class: Harmless, What: Type, Type: n.Name, Name: n.Name, New: n.Source.At(n.At),
			Message: fmt.Sprintf("type %s is new, with %s and %s", n.Name, countText(len(n.Relations), "relation"), countText(len(n.Bindings), "action")),
		})
		return
	case n == nil:
		d.add(Change{
			Class: BreakingForData, What: Type, Type: o.Name, Name: o.Name, Old: o.Source.At(o.At),
			Message: fmt.Sprintf("type %s is removed: stored relationships of its resources would be orphaned, and nobody could act on them", o.Name),
		})
		return
	}
	d.idPrefixes(o, n)
	d.relations(o, n)
	d.bindings(o, n)
}

func (d *differ) idPrefixes(o, n *policy.Type) {
	// A type that no document declared has no IDs.
	if o.IDPrefix == n.IDPrefix || o.Synthesised() || n.Synthesised() {
		return
	}
	d.add(Change{
		Class: BreakingForIDs, What: IDPrefix, Type: n.Name, Name: n.IDPrefix, Old: o.Source.At(o.At), New: n.Source.At(n.At),
		Message: fmt.Sprintf("ids of type %s begin with %s, no longer with %s: those that exist are not recognised", n.Name, n.IDPrefix, o.IDPrefix),
	})
}

func (d *differ) unions(o, n *policy.Union) {
	// A new or removed union changes nothing by itself: its effect on relations and bindings is compared there.
	if o == nil || n == nil {
		return
	}
	for was, is := range pairByName(o.Members, n.Members, func(t *policy.Type) string { return t.Name }) {
		c := Change{Class: Harmless, What: Union, Old: o.Source.At(o.At), New: n.Source.At(n.At)}
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
		d.add(c)
	}
}

func (d *differ) actions(o, n *policy.Action) {
	switch {
	case o == nil:
		d.add(Change{
			Class: Harmless, What: Action, Name: n.Name, New: n.Source.At(n.At),
			Message: fmt.Sprintf("action %s is new; its bindings are listed with the types", n.Name),
		})
	case n == nil:
		d.add(Change{
			Class: Harmless, What: Action, Name: o.Name, Old: o.Source.At(o.At),
			Message: fmt.Sprintf("action %s is removed; its bindings are listed with the types", o.Name),
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
