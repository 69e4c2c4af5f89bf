package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/clip"
)

// report returns the result for a unit, given the units that live.
func (g *graph) report(u *unit, lives set) Report {
	r := Report{Origin: u.Origin, Module: sentence(u.name), State: Merged, Live: u.DSL, Exceeds: u.exceeds}
	switch {
	case u.original != nil:
		r = g.duplicate(u, lives)
	case !lives[u.index]:
		r.State, r.Message = Rejected, g.reason(u, lives)
	}
	if r.State == Merged || r.State == Duplicate {
		r.Takes = u.live != nil && !u.live.within(u.self())
		return r
	}
	r.Unread = u.self().claims == nil
	if r.Live = u.Live; u.live == nil {
		r.State = Rejected
	}
	if len(u.parts) == 0 {
		return r
	}
	r.State = Rejected
	r.Live, r.Takes = g.remains(u, lives)
	if slices.ContainsFunc(u.parts, func(p *unit) bool { return !g.gone[p.index] && g.holds(p, lives) }) {
		r.State = LastGoodLive
	}
	return r
}

// narrows reports whether the module is rejected, and its last live text loses a part.
func (r Report) narrows() bool { return r.Takes && r.State != Merged && r.State != Duplicate }

// Report returns the report on the module with this origin.
func (r Result) Report(o Origin) (Report, bool) {
	i := slices.IndexFunc(r.Reports, func(report Report) bool { return report.Origin == o })
	if i < 0 {
		return Report{}, false
	}
	return r.Reports[i], true
}

// duplicate returns the report on a unit with the text of another.
func (g *graph) duplicate(u *unit, lives set) Report {
	r := g.report(u.original, lives)
	r.Origin = u.Origin
	if r.State == Merged {
		r.State, r.Message, r.Live = Duplicate, fmt.Sprintf("the same module as %s, which is part of the model", u.original.Origin), u.DSL
		return r
	}
	r.Message = fmt.Sprintf("the same module as %s: %s", u.original.Origin, r.Message)
	return r
}

// reason returns why a unit does not live.
func (g *graph) reason(u *unit, lives set) string {
	if u.broken != "" {
		return u.broken
	}
	var all problems
	for _, n := range slices.SortedFunc(maps.Keys(u.claims), name.compare) {
		if other := g.rival(n, u, lives); other != nil && !g.redundant(n, u, lives) {
			all.add(fmt.Sprintf("%s%s is already defined by %s: %s", u.source.find(n), n, other.Origin, u.evasion()))
		}
	}
	with := slices.Clone(lives)
	with[u.index] = true
	for _, p := range u.parts {
		with[p.index] = false
	}
	for _, n := range u.needs {
		ofNothing := n.what.rel != "" && !g.defines(with, name{typ: n.what.typ}) // The message about its missing type is enough.
		if !ofNothing && !g.meets(with, n) {
			all.add(u.source.find(n.by).String() + g.unmet(n, with))
		}
	}
	if len(all.shown) == 0 {
		all.add("it contradicts what is live, or itself, by way of other modules: correct those that are rejected first")
	}
	return all.String()
}

// evasion returns the remedy for a conflict. The API determines the names in a generated module.
func (u *unit) evasion() string {
	if u.API != "" {
		return "only one of the two can be in the store, as the names that " + u.API + " has here cannot be chosen"
	}
	return "rename it, or extend what is there"
}

// redundant reports whether a conflict over a relation follows from one over its type.
func (g *graph) redundant(n name, u *unit, lives set) bool {
	typ := name{typ: n.typ}
	_, claimed := u.claims[typ]
	return n.rel != "" && claimed && g.rival(typ, u, lives) != nil
}

// rival returns a unit of the set that defines n and comes from another object, or nil.
func (g *graph) rival(n name, u *unit, in set) *unit {
	for _, i := range g.providers[n] {
		if in[i] && g.units[i].Origin != u.Origin {
			return g.units[i]
		}
	}
	return nil
}

// definer returns a unit of the set that defines n, or nil.
func (g *graph) definer(n name, in set) *unit {
	for _, i := range g.providers[n] {
		if in[i] {
			return g.units[i]
		}
	}
	return nil
}

// unmet returns the message about a need that is not met.
func (g *graph) unmet(n need, lives set) string {
	if n.from != "" && g.defines(lives, n.what) {
		if !g.definer(n.what, lives).claims[n.what].leads() {
			return fmt.Sprintf("%s says `%s from %s`, but after from only a relation of the form [type] can stand: make it one",
				n.by, n.from, n.what.rel)
		}
		return fmt.Sprintf("%s says `%s from %s`, but no type that %s leads to has a relation %s: define it there",
			n.by, n.from, n.what.rel, n.what.rel, n.from)
	}
	problem := fmt.Sprintf("%s refers to %s, ", n.by, n.what)
	if n.by == n.what {
		problem = fmt.Sprintf("the module extends %s, ", n.what)
	}
	if all := g.providers[n.what]; len(all) > 0 {
		return problem + fmt.Sprintf("which %s defines, but that is rejected itself: correct it first", g.units[all[0]].Origin)
	}
	return problem + "which no module defines: define it, or correct the name"
}

// definitions lists the parts of a model with the origins of their modules.
func (g *graph) definitions(m *openfgav1.AuthorizationModel, lives set) []Definition {
	all := Definitions(m)
	for i, d := range all {
		all[i].Origin = g.definer(name{d.Type, d.Relation, d.Condition}, lives).Origin
	}
	return all
}

// These constants bound a message, because it goes into the status of an object.
const (
	maxProblems     = 3
	maxProblemBytes = 400
)

// problems collects the problems of a module in one message.
type problems struct {
	shown []string
	more  int
}

func (p *problems) add(problem string) {
	if len(p.shown) == maxProblems {
		p.more++
		return
	}
	p.shown = append(p.shown, sentence(problem))
}

// String joins the problems.
func (p *problems) String() string {
	s := strings.Join(p.shown, "; ")
	if p.more > 0 {
		s += fmt.Sprintf("; and %d more", p.more)
	}
	return s
}

// sentence returns any text as one line of bounded length.
func sentence(s string) string {
	return clip.Text(strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " "), maxProblemBytes)
}
