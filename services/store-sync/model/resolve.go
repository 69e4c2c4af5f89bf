package model

import "slices"

// moduleSet is a set of the units of a graph, by index.
type moduleSet []bool

func (s moduleSet) unionWith(t moduleSet) moduleSet {
	u := slices.Clone(s)
	for i := range t {
		u[i] = u[i] || t[i]
	}
	return u
}

// withMember returns the set with one more member.
func (s moduleSet) withMember(i int) moduleSet {
	t := slices.Clone(s)
	t[i] = true
	return t
}

// withoutMembers returns the set without the members that are in both other sets.
func (s moduleSet) withoutMembers(t, u moduleSet) moduleSet {
	rest := slices.Clone(s)
	for i := range rest {
		rest[i] = s[i] && (!t[i] || !u[i])
	}
	return rest
}

func (s moduleSet) listMembers() []int {
	var all []int
	for i, in := range s {
		if in {
			all = append(all, i)
		}
	}
	return all
}

// moduleGraph holds the units of a store with their needs and their conflicts. Units are in the order of their claims, and
// the parts of last live texts come after all modules.
type moduleGraph struct {
	units     []*parsedModule
	providers map[definitionName][]int
	// earlier holds for each unit the units with a better claim to a name that it defines too.
	earlier [][]int
	// gone holds the parts that their modules do not contain any more.
	gone moduleSet
}

func newModuleGraph(modules []*parsedModule) *moduleGraph {
	units := withoutDuplicates(modules)
	for _, u := range modules {
		units = append(units, u.splitLiveDefinitions()...)
	}
	g := &moduleGraph{units: units, providers: map[definitionName][]int{}, earlier: make([][]int, len(units))}
	for i, u := range units {
		u.index = i
		for n := range u.claims {
			g.providers[n] = append(g.providers[n], i)
		}
	}
	for n, all := range g.providers {
		g.rankDefiners(n, all)
	}
	for i, u := range units {
		if u.whole != nil {
			g.earlier[i] = append(g.earlier[i], u.whole.index)
		}
		slices.Sort(g.earlier[i])
		g.earlier[i] = slices.Compact(g.earlier[i])
	}
	g.gone = g.emptySet()
	for _, u := range modules {
		g.dropRemovedDefinitions(u)
	}
	return g
}

// rankDefiners records, for the units that define n, which one gives way to which.
func (g *moduleGraph) rankDefiners(n definitionName, all []int) {
	sorted := slices.SortedFunc(slices.Values(all), func(i, j int) int { return g.units[i].comparePrecedence(n, g.units[j]) })
	for k, i := range sorted {
		for _, j := range sorted[:k] {
			if g.units[i].Origin != g.units[j].Origin {
				g.earlier[i] = append(g.earlier[i], j)
			}
		}
	}
}

// resolveLiveModules returns the units outside `out` that live. Living units meet their needs, and no living unit with
// a better claim conflicts with them.
//
// Whether a unit lives depends on whether others do not, so the function approaches the answer from both sides. A unit
// is sure to live if it lives even beside all earlier units that possibly live. It possibly lives if it lives beside
// only the sure ones. Both sets become equal, unless needs and conflicts form a [circle].
func (g *moduleGraph) resolveLiveModules(out moduleSet) moduleSet {
	for {
		sure, possible := g.certainAndPossibleLiveModules(out, g.emptySet())
		i := firstDifference(possible, sure)
		if i < 0 {
			return sure
		}
		undecided := slices.Clone(possible)
		for j := range undecided {
			undecided[j] = possible[j] && !sure[j]
		}
		out = g.findCircle(i, undecided).decideUnits(out)
	}
}

func (g *moduleGraph) emptySet() moduleSet { return make(moduleSet, len(g.units)) }

// firstDifference returns the first member of s that is not in t, or -1.
func firstDifference(s, t moduleSet) int {
	for i := range s {
		if s[i] && !t[i] {
			return i
		}
	}
	return -1
}

// certainAndPossibleLiveModules returns the units that live for sure and those that possibly do, if the assumed ones
// live.
func (g *moduleGraph) certainAndPossibleLiveModules(out, assumed moduleSet) (sure, possible moduleSet) {
	sure = g.emptySet()
	for {
		possible = g.largestSetWithoutConflicts(out, sure.unionWith(assumed))
		next := g.largestSetWithoutConflicts(out, possible.unionWith(assumed))
		if slices.Equal(sure, next) {
			return sure, possible
		}
		sure = next
	}
}

// largestSetWithoutConflicts returns the largest set of units with three properties. No member is in out, none conflicts with an earlier one
// in `before`, and the set meets all their needs.
func (g *moduleGraph) largestSetWithoutConflicts(out, before moduleSet) moduleSet {
	in := g.emptySet()
	for i := range in {
		in[i] = !out[i] && !slices.ContainsFunc(g.earlier[i], func(e int) bool { return before[e] })
	}
	for changed := true; changed; {
		changed = false
		for i, u := range g.units {
			if in[i] && u.host != nil && !g.isPartLive(u.host, in) {
				in[i], changed = false, true
			}
			if in[i] && slices.ContainsFunc(u.needs, func(n definitionNeed) bool { return !g.isNeedMet(in, n) }) {
				in[i], changed = false, true
			}
		}
	}
	return in
}

// isNeedMet reports whether the units in the set meet the need.
func (g *moduleGraph) isNeedMet(in moduleSet, n definitionNeed) bool {
	if n.from == "" {
		return g.hasDefinition(in, n.what)
	}
	return slices.ContainsFunc(g.providers[n.what], func(i int) bool {
		d := g.units[i].claims[n.what]
		if !in[i] || !d.canBeTupleset() {
			return false
		}
		for _, t := range d.types {
			if g.hasDefinition(in, definitionName{typ: t.GetType(), rel: n.from}) {
				return true
			}
		}
		return false
	})
}

func (g *moduleGraph) hasDefinition(in moduleSet, n definitionName) bool {
	return slices.ContainsFunc(g.providers[n], func(i int) bool { return in[i] })
}

// dependencyClosure returns the given units with all units of the set on which they depend.
func (g *moduleGraph) dependencyClosure(in moduleSet, roots ...int) moduleSet {
	reached, next := g.emptySet(), slices.Clone(roots)
	for len(next) > 0 {
		i := next[len(next)-1]
		next = next[:len(next)-1]
		if reached[i] {
			continue
		}
		reached[i] = true
		if host := g.units[i].host; host != nil {
			next = append(next, host.index)
		}
		for _, n := range g.units[i].needs {
			next = append(next, g.candidateProviders(in, n)...)
		}
	}
	return reached
}

// candidateProviders returns the units of the set that help to meet the need.
func (g *moduleGraph) candidateProviders(in moduleSet, n definitionNeed) []int {
	var all []int
	for _, i := range g.providers[n.what] {
		if !in[i] {
			continue
		}
		all = append(all, i)
		for _, t := range g.units[i].claims[n.what].types {
			if n.from != "" {
				all = append(all, g.providers[definitionName{typ: t.GetType(), rel: n.from}]...)
			}
		}
	}
	return slices.DeleteFunc(all, func(i int) bool { return !in[i] })
}
