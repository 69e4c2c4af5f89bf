package model

import "slices"

// maxContradictions bounds the contradictions of the search in one circle. In a search that ends there, a unit that contradicts an
// assumption stays out.
const maxContradictions = 100

// circle is a set of units that live or are out depending on each other. Needs and conflicts lead from each of them back to it.
//
// The search assumes that one unit after the other lives, the one with the best claim first. If that is contradictory, the unit is out.
// A contradiction may be the fault of an earlier assumption, so the search withdraws that one if nothing else helps.
type circle struct {
	graph *moduleGraph
	units []int
	// contradictions counts those that the search met.
	contradictions int
}

// findCircle returns the circle of the unit i among the undecided units. Units that define or need one name belong together. A module
// belongs together with the parts of its last live text.
func (g *moduleGraph) findCircle(i int, undecided moduleSet) *circle {
	mentioned := map[int][]definitionName{}
	for _, j := range undecided.listMembers() {
		mentioned[j] = g.mentionedNames(g.units[j])
	}
	in, names := g.emptySet(), map[definitionName]bool{}
	add := func(j int) {
		in[j] = true
		for _, n := range mentioned[j] {
			names[n] = true
		}
	}
	joins := func(j int) bool {
		u := g.units[j]
		return u.whole != nil && in[u.whole.index] || slices.ContainsFunc(u.parts, func(p *parsedModule) bool { return in[p.index] }) ||
			slices.ContainsFunc(mentioned[j], func(n definitionName) bool { return names[n] })
	}
	add(i)
	for again := true; again; {
		again = false
		for j := range mentioned {
			if !in[j] && joins(j) {
				add(j)
				again = true
			}
		}
	}
	return &circle{graph: g, units: in.listMembers()}
}

// mentionedNames returns the names that a unit defines or needs.
func (g *moduleGraph) mentionedNames(u *parsedModule) []definitionName {
	var names []definitionName
	for n := range u.claims {
		names = append(names, n)
	}
	for _, n := range u.needs {
		names = append(names, n.what)
		for _, i := range g.providers[n.what] {
			for _, t := range g.units[i].claims[n.what].types {
				if n.from != "" {
					names = append(names, definitionName{typ: t.GetType(), rel: n.from})
				}
			}
		}
	}
	return names
}

// decideUnits returns `out` with the units of the circle that do not live.
func (c *circle) decideUnits(out moduleSet) moduleSet {
	out = slices.Clone(out)
	for _, i := range c.units {
		assumed := c.graph.emptySet()
		assumed[i] = true
		if _, possible := c.graph.boundLiveModules(out, assumed); !possible[i] {
			out[i] = true // It contradicts itself.
		}
	}
	lives := c.searchLiveUnits(out, c.graph.emptySet(), c.graph.emptySet())
	if lives == nil {
		lives = c.searchGreedily(out)
	}
	for _, i := range c.units {
		out[i] = !lives[i]
	}
	return out
}

// searchLiveUnits returns the living units if the assumed ones live and the refused ones are out, or nil if that is contradictory.
func (c *circle) searchLiveUnits(out, assumed, refused moduleSet) moduleSet {
	sure, possible := c.graph.boundLiveModules(out, assumed)
	if firstDifference(assumed, possible) >= 0 || slices.ContainsFunc(refused.listMembers(), func(i int) bool { return c.mustLive(i, sure, possible) }) {
		c.contradictions++
		return nil
	}
	i := c.firstUndecided(possible, sure.unionWith(assumed))
	if i < 0 {
		return sure
	}
	if lives := c.searchLiveUnits(out, assumed.withMember(i), refused); lives != nil || c.contradictions > maxContradictions {
		return lives
	}
	return c.searchLiveUnits(out.withMember(i), assumed, refused.withMember(i))
}

// mustLive reports whether a refused unit lives nevertheless: no unit with a better claim is possible, and its needs are met for sure.
func (c *circle) mustLive(i int, sure, possible moduleSet) bool {
	u, with := c.graph.units[i], sure.withMember(i)
	return !slices.ContainsFunc(c.graph.earlier[i], func(e int) bool { return possible[e] }) && (u.host == nil || c.graph.isPartLive(u.host, with)) &&
		!slices.ContainsFunc(u.needs, func(n definitionNeed) bool { return !c.graph.isNeedMet(with, n) })
}

// searchGreedily returns living units in few steps. It withdraws no assumption.
func (c *circle) searchGreedily(out moduleSet) moduleSet {
	out, assumed := slices.Clone(out), c.graph.emptySet()
	for {
		sure, possible := c.graph.boundLiveModules(out, assumed)
		i := c.firstUndecided(possible, sure.unionWith(assumed))
		if i < 0 {
			return sure
		}
		trial := assumed.withMember(i)
		if _, possible = c.graph.boundLiveModules(out, trial); firstDifference(trial, possible) < 0 {
			assumed = trial
		} else {
			out[i], assumed = true, c.graph.emptySet()
		}
	}
}

// firstUndecided returns the earliest possible unit of the circle that is not decided, or -1. Units come first for which no unit with a
// better claim is possible: they depend on needs alone.
func (c *circle) firstUndecided(possible, decided moduleSet) int {
	first := -1
	for _, i := range c.units {
		switch {
		case !possible[i] || decided[i]:
		case !slices.ContainsFunc(c.graph.earlier[i], func(e int) bool { return possible[e] }):
			return i
		case first < 0:
			first = i
		}
	}
	return first
}
