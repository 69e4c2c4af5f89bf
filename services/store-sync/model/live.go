package model

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"
	"google.golang.org/protobuf/proto"

	"github.com/entail-dev/entail/services/internal/precedence"
)

// parseLiveText parses the last live text of a module. It was accepted before, so no limit applies.
func (s moduleSource) parseLiveText(u *parsedModule) *parsedModule {
	switch {
	case s.Live == "":
		return nil
	case s.settled && u.claims != nil:
		return u
	case s.settled && u.original != nil:
		return u.original
	}
	live := parseModuleText(normalizeText(s.Live), Limits{Types: math.MaxInt, Bytes: math.MaxInt})
	if live.broken != "" {
		return nil
	}
	return live
}

// moduleOfPart returns the unit with the module's text.
func (u *parsedModule) moduleOfPart() *parsedModule { return cmp.Or(u.original, u) }

// splitLiveDefinitions returns one unit for each definition of the module's last live text. These stay, as far as they remain valid,
// if the module itself cannot live.
func (u *parsedModule) splitLiveDefinitions() []*parsedModule {
	if u.live == nil || u.settled && u.original != nil {
		return nil
	}
	hosts := map[string]*parsedModule{}
	for _, n := range slices.SortedFunc(maps.Keys(u.live.claims), definitionName.compareName) {
		p := u.newLiveDefinition(n)
		if p.host = hosts[n.typ]; n.rel == "" {
			p.host, hosts[n.typ] = nil, p
		}
		u.parts = append(u.parts, p)
	}
	return u.parts
}

func (u *parsedModule) newLiveDefinition(n definitionName) *parsedModule {
	d := u.live.claims[n]
	p := &parsedModule{Module: u.Module, source: u.live.source, name: u.live.name, whole: u.moduleOfPart(), claims: map[definitionName]relationDefinition{n: d}}
	switch {
	case n.cond != "":
		p.conditions = map[string]*openfgav1.Condition{n.cond: u.live.conditions[n.cond]}
	case n.rel != "":
		p.needs = append(needsOfRelation(n, d), definitionNeed{by: definitionName{typ: n.typ}, what: definitionName{typ: n.typ}})
		p.extensions = []*openfgav1.TypeDefinition{{
			Type: n.typ, Relations: map[string]*openfgav1.Userset{n.rel: d.rewrite},
			Metadata: &openfgav1.Metadata{Relations: map[string]*openfgav1.RelationMetadata{n.rel: {DirectlyRelatedUserTypes: d.types}}},
		}}
	default:
		p.types = []*openfgav1.TypeDefinition{{Type: n.typ}}
	}
	return p
}

// comparePrecedence compares two units by their claims to n. For one object, the present text comes before the parts of its
// last live one.
func (u *parsedModule) comparePrecedence(n definitionName, o *parsedModule) int {
	return cmp.Or(precedence.Compare(u.precedenceClaimTo(n), o.precedenceClaimTo(n)), cmp.Compare(u.partRank(), o.partRank()), cmp.Compare(u.index, o.index))
}

// precedenceClaimTo returns the unit's claim to n. Documents are planned as one policy beside what is live, so a new module must not
// take a name from that plan.
func (u *parsedModule) precedenceClaimTo(n definitionName) precedence.Claim {
	held := u.whole != nil
	if u.live != nil {
		_, held = u.live.claims[n]
	}
	switch {
	case u.settled && u.whole == nil:
		return u.claimWithLiveness(precedence.Present)
	case held:
		return u.claimWithLiveness(precedence.Earlier)
	default:
		c := u.claimWithLiveness(precedence.None)
		c.Document = u.Origin.Kind == Policy
		return c
	}
}

// partRank returns 0 for a module and 1 for a part of a last live text.
func (u *parsedModule) partRank() int {
	if u.whole == nil {
		return 0
	}
	return 1
}

// claimWithLiveness returns the module's claim to a name, given how far the module is live.
func (m Module) claimWithLiveness(live precedence.Liveness) precedence.Claim {
	if m.Origin.Kind == Core {
		live = precedence.None // The core module outranks all others in any case.
	}
	return precedence.Claim{
		Core: m.Origin.Kind == Core, Live: live, Served: m.Origin.Kind == Discovered, Created: m.Created, Name: m.Origin.sortKey(),
	}
}

// dropRemovedDefinitions drops from a module's last live text the definitions that its readable new text does not have, unless the rest
// needs them. Only the live parts of other modules count, because their new texts may still be rejected.
func (g *moduleGraph) dropRemovedDefinitions(u *parsedModule) {
	if u.settled || u.moduleOfPart().claims == nil {
		return
	}
	rest := g.emptySet()
	for i, other := range g.units {
		rest[i] = other.whole != nil && other.Origin != u.Origin
	}
	left := slices.Clone(rest)
	for _, p := range u.parts {
		left[p.index] = true
		for n := range p.claims {
			_, rest[p.index] = u.moduleOfPart().claims[n]
		}
	}
	for again := true; again; {
		again = false
		for _, p := range u.parts {
			for _, i := range g.missingPrerequisites(p, rest, left) {
				rest[i], again = true, true
			}
		}
	}
	for _, p := range u.parts {
		g.gone[p.index] = !rest[p.index]
	}
}

// missingPrerequisites returns the units of a larger set without which a part is not valid in a smaller one.
func (g *moduleGraph) missingPrerequisites(p *parsedModule, in, of moduleSet) []int {
	if !in[p.index] {
		return nil
	}
	var lacking []int
	if p.host != nil && !in[p.host.index] {
		lacking = append(lacking, p.host.index)
	}
	for _, n := range p.needs {
		if g.isNeedMet(in, n) {
			continue
		}
		for _, i := range g.candidateProviders(of, n) {
			if !in[i] {
				lacking = append(lacking, i)
			}
		}
	}
	return lacking
}

// remainingPartOfLastLiveText is what is left of the last live text of a module that does not live: without what the new text no longer
// has, and without what others define now. If that is the present text, which would count as live from then on, it is also without
// what lives of a module with the earlier text alone.
func (g *moduleGraph) remainingPartOfLastLiveText(u *parsedModule, lives moduleSet) (text string, trimmed bool) {
	text, trimmed = g.trimLastLiveText(u, lives, g.isPartLive)
	if !u.settled && normalizeText(text).String() == u.source.String() {
		return g.trimLastLiveText(u, lives, func(p *parsedModule, lives moduleSet) bool { return lives[p.index] })
	}
	return text, trimmed
}

// trimLastLiveText returns the part of a last live text that holds, or that nobody else defines.
func (g *moduleGraph) trimLastLiveText(u *parsedModule, live moduleSet, keep func(*parsedModule, moduleSet) bool) (text string, trimmed bool) {
	left := map[definitionName]bool{}
	for _, p := range u.parts {
		for n := range p.claims {
			left[n] = !g.gone[p.index] && (keep(p, live) || g.conflictingDefiner(n, p, live) == nil)
		}
	}
	for n, stays := range left {
		left[n] = stays && (n.rel == "" || !u.live.hasType(n.typ) || left[definitionName{typ: n.typ}])
	}
	maps.DeleteFunc(left, func(_ definitionName, stays bool) bool { return !stays })
	if len(left) == len(u.live.claims) {
		return u.Live, false
	}
	if len(left) == 0 {
		return "", true
	}
	text = u.live.renderSelectedDefinitions(left)
	again := parseModuleText(normalizeText(text), Limits{Types: math.MaxInt, Bytes: math.MaxInt})
	if again.broken != "" || len(again.claims) != len(left) || !again.isSubsetOf(u.live) {
		return u.Live, false // The shortened text must be exact; else the whole text stays.
	}
	return text, true
}

// isPartLive reports whether a part lives, itself or by a module with the same text. Two modules that had the same text have the same part.
func (g *moduleGraph) isPartLive(p *parsedModule, lives moduleSet) bool {
	if lives[p.index] {
		return true
	}
	for n := range p.claims {
		if slices.ContainsFunc(g.providers[n], func(i int) bool {
			other := g.units[i]
			return lives[i] && other.Origin != p.Origin && (other.source.String() == p.source.String() || other.whole != nil && p.hasSameDefinition(n, other))
		}) {
			return true
		}
	}
	return false
}

// renderSelectedDefinitions returns a text with the definitions of the unit that keep selects.
func (u *parsedModule) renderSelectedDefinitions(keep map[definitionName]bool) string {
	m := &openfgav1.AuthorizationModel{SchemaVersion: typesystem.SchemaVersion1_1, Conditions: maps.Clone(u.conditions)}
	maps.DeleteFunc(m.GetConditions(), func(c string, _ *openfgav1.Condition) bool { return !keep[definitionName{cond: c}] })
	for _, t := range slices.Concat(u.types, u.extensions) {
		t = proto.CloneOf(t)
		maps.DeleteFunc(t.GetRelations(), func(r string, _ *openfgav1.Userset) bool { return !keep[definitionName{typ: t.GetType(), rel: r}] })
		if keep[definitionName{typ: t.GetType()}] || len(t.GetRelations()) > 0 {
			m.TypeDefinitions = append(m.TypeDefinitions, t)
		}
	}
	text, err := RenderDSL(m)
	if err != nil {
		return ""
	}
	text = strings.Replace(text, "model\n  schema 1.1\n", "module "+u.name+"\n", 1) + "\n"
	for _, t := range u.extensions {
		text = strings.Replace(text, "\ntype "+t.GetType()+"\n", "\nextend type "+t.GetType()+"\n", 1)
	}
	return text
}

// hasType reports whether the unit itself defines a type.
func (u *parsedModule) hasType(typ string) bool {
	_, own := u.claims[definitionName{typ: typ}]
	return own
}

// isSubsetOf reports whether another unit has every definition of this one, unchanged.
func (u *parsedModule) isSubsetOf(o *parsedModule) bool {
	for n := range u.claims {
		if !u.hasSameDefinition(n, o) {
			return false
		}
	}
	return true
}

// hasSameDefinition reports whether another unit has the same definition of n.
func (u *parsedModule) hasSameDefinition(n definitionName, o *parsedModule) bool {
	d := u.claims[n]
	other, has := o.claims[n]
	return has && proto.Equal(d.rewrite, other.rewrite) && proto.Equal(u.conditions[n.cond], o.conditions[n.cond]) &&
		slices.EqualFunc(d.types, other.types, func(a, b *openfgav1.RelationReference) bool { return proto.Equal(a, b) })
}
