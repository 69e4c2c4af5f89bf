package model

import "slices"

// maxContradictions bounds the contradictions that the search of one circle may meet. After more,
// [circle.searchGreedily] decides. It leaves out each unit that contradicts an assumption.
const maxContradictions = 100

// circle is a set of undecided units that depend on each other by needs and conflicts: whether one of them lives
// depends on the others.
//
// The search assumes that one unit after the other lives, the one with the best claim first. If this leads to a
// contradiction, the unit is out. An earlier assumption may be the cause of the contradiction, so the search withdraws
// it if nothing else helps.
type circle struct {
	graph *moduleGraph
	units []int
	// contradictions counts the contradictions that the search has met.
	contradictions int
}

// findCircle returns the circle of unit i among the undecided units. Two units belong together if both define or need
// the same name. A module also belongs together with the parts of its last live text.
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

// decideUnits returns `out` together with the units of the circle that do not live.
func (c *circle) decideUnits(out moduleSet) moduleSet {
	out = slices.Clone(out)
	for _, i := range c.units {
		assumed := c.graph.emptySet()
		assumed[i] = true
		if _, possible := c.graph.certainAndPossibleLiveModules(out, assumed); !possible[i] {
			out[i] = true // The unit contradicts itself.
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

// searchLiveUnits returns the living units if the assumed units live and the refused units are out. It returns nil if
// that is contradictory, or if the search has met too many contradictions.
func (c *circle) searchLiveUnits(out, assumed, refused moduleSet) moduleSet {
	sure, possible := c.graph.certainAndPossibleLiveModules(out, assumed)
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

// mustLive reports whether a refused unit would live nevertheless: no unit with a better claim possibly lives, and its
// needs are met for sure.
func (c *circle) mustLive(i int, sure, possible moduleSet) bool {
	u, with := c.graph.units[i], sure.withMember(i)
	return !slices.ContainsFunc(c.graph.earlier[i], func(e int) bool { return possible[e] }) && (u.host == nil || c.graph.isPartLive(u.host, with)) &&
		!slices.ContainsFunc(u.needs, func(n definitionNeed) bool { return !c.graph.isNeedMet(with, n) })
}

// searchGreedily returns living units in few steps. A unit that contradicts the assumptions stays out; the assumptions
// then begin again.
func (c *circle) searchGreedily(out moduleSet) moduleSet {
	out, assumed := slices.Clone(out), c.graph.emptySet()
	for {
		sure, possible := c.graph.certainAndPossibleLiveModules(out, assumed)
		i := c.firstUndecided(possible, sure.unionWith(assumed))
		if i < 0 {
			return sure
		}
		trial := assumed.withMember(i)
		if _, possible = c.graph.certainAndPossibleLiveModules(out, trial); firstDifference(trial, possible) < 0 {
			assumed = trial
		} else {
			out[i], assumed = true, c.graph.emptySet()
		}
	}
}

// firstUndecided returns the first unit of the circle that possibly lives and is not decided, or -1. It prefers a unit
// for which no unit with a better claim possibly lives, because such a unit depends on needs alone.
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
