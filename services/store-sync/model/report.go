package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/truncate"
)

// reportModule returns the result for a unit, given the units that live.
func (g *moduleGraph) reportModule(u *parsedModule, lives moduleSet) ModuleReport {
	r := ModuleReport{Origin: u.Origin, Module: oneLine(u.name), State: Merged, Live: u.DSL, Exceeds: u.exceeds}
	switch {
	case u.original != nil:
		r = g.reportDuplicate(u, lives)
	case !lives[u.index]:
		r.State, r.Message = Rejected, g.rejectionReason(u, lives)
	}
	if r.State == Merged || r.State == Duplicate {
		r.Takes = u.live != nil && !u.live.isSubsetOf(u.moduleOfPart())
		return r
	}
	r.Unread = u.moduleOfPart().claims == nil
	if r.Live = u.Live; u.live == nil {
		r.State = Rejected
	}
	if len(u.parts) == 0 {
		return r
	}
	r.State = Rejected
	r.Live, r.Takes = g.remainingPartOfLastLiveText(u, lives)
	if slices.ContainsFunc(u.parts, func(p *parsedModule) bool { return !g.gone[p.index] && g.isPartLive(p, lives) }) {
		r.State = LastGoodLive
	}
	return r
}

// hasLostLivePart reports whether the module is rejected, and its last live text loses a part.
func (r ModuleReport) hasLostLivePart() bool {
	return r.Takes && r.State != Merged && r.State != Duplicate
}

// ReportOf returns the report on the module with this origin.
func (r MergeResult) ReportOf(o ModuleOrigin) (ModuleReport, bool) {
	i := slices.IndexFunc(r.Reports, func(report ModuleReport) bool { return report.Origin == o })
	if i < 0 {
		return ModuleReport{}, false
	}
	return r.Reports[i], true
}

// reportDuplicate returns the report on a unit with the text of another.
func (g *moduleGraph) reportDuplicate(u *parsedModule, lives moduleSet) ModuleReport {
	r := g.reportModule(u.original, lives)
	r.Origin = u.Origin
	if r.State == Merged {
		r.State, r.Message, r.Live = Duplicate, fmt.Sprintf("the same module as %s, which is part of the model", u.original.Origin), u.DSL
		return r
	}
	r.Message = fmt.Sprintf("the same module as %s: %s", u.original.Origin, r.Message)
	return r
}

// rejectionReason returns why a unit does not live.
func (g *moduleGraph) rejectionReason(u *parsedModule, lives moduleSet) string {
	if u.broken != "" {
		return u.broken
	}
	var all problemMessages
	for _, n := range slices.SortedFunc(maps.Keys(u.claims), definitionName.compareName) {
		if other := g.conflictingDefiner(n, u, lives); other != nil && !g.isCausedByTypeConflict(n, u, lives) {
			all.addProblem(fmt.Sprintf("%s%s is already defined by %s: %s", u.source.positionOfDefinition(n), n, other.Origin, u.conflictRemedy()))
		}
	}
	with := slices.Clone(lives)
	with[u.index] = true
	for _, p := range u.parts {
		with[p.index] = false
	}
	for _, n := range u.needs {
		ofNothing := n.what.rel != "" && !g.hasDefinition(with, definitionName{typ: n.what.typ}) // The message about its missing type is enough.
		if !ofNothing && !g.isNeedMet(with, n) {
			all.addProblem(u.source.positionOfDefinition(n.by).String() + g.unmetNeedMessage(n, with))
		}
	}
	if len(all.shown) == 0 {
		all.addProblem("it conflicts with the live model or with other rejected modules: correct those first")
	}
	return all.String()
}

// conflictRemedy returns the remedy for a conflict. The API determines the names in a generated module.
func (u *parsedModule) conflictRemedy() string {
	if u.API != "" {
		return "only one of the two can be in the store, as the names that " + u.API + " has here cannot be chosen"
	}
	return "rename it, or extend the existing definition"
}

// isCausedByTypeConflict reports whether a conflict over a relation follows from one over its type.
func (g *moduleGraph) isCausedByTypeConflict(n definitionName, u *parsedModule, lives moduleSet) bool {
	typ := definitionName{typ: n.typ}
	_, claimed := u.claims[typ]
	return n.rel != "" && claimed && g.conflictingDefiner(typ, u, lives) != nil
}

// conflictingDefiner returns a unit of the set that defines n and comes from another object, or nil.
func (g *moduleGraph) conflictingDefiner(n definitionName, u *parsedModule, in moduleSet) *parsedModule {
	for _, i := range g.providers[n] {
		if in[i] && g.units[i].Origin != u.Origin {
			return g.units[i]
		}
	}
	return nil
}

// definerOf returns a unit of the set that defines n, or nil.
func (g *moduleGraph) definerOf(n definitionName, in moduleSet) *parsedModule {
	for _, i := range g.providers[n] {
		if in[i] {
			return g.units[i]
		}
	}
	return nil
}

// unmetNeedMessage returns the message about a need that is not met.
func (g *moduleGraph) unmetNeedMessage(n definitionNeed, lives moduleSet) string {
	if n.from != "" && g.hasDefinition(lives, n.what) {
		if !g.definerOf(n.what, lives).claims[n.what].canBeTupleset() {
			return fmt.Sprintf("%s uses `%s from %s`, but from needs a relation of the form [type]: change that relation",
				n.by, n.from, n.what.rel)
		}
		return fmt.Sprintf("%s uses `%s from %s`, but no type that %s leads to has a relation %s: define it there",
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

// definitionsWithOrigins lists the parts of a model with the origins of their modules.
func (g *moduleGraph) definitionsWithOrigins(m *openfgav1.AuthorizationModel, lives moduleSet) []Definition {
	all := ListDefinitions(m)
	for i, d := range all {
		all[i].Origin = g.definerOf(definitionName{d.Type, d.Relation, d.Condition}, lives).Origin
	}
	return all
}

// These constants bound a message, because it goes into the status of an object.
const (
	maxProblems     = 3
	maxProblemBytes = 400
)

// problemMessages collects the problems of a module in one message.
type problemMessages struct {
	shown []string
	more  int
}

func (p *problemMessages) addProblem(problem string) {
	if len(p.shown) == maxProblems {
		p.more++
		return
	}
	p.shown = append(p.shown, oneLine(problem))
}

// String joins the problems.
func (p *problemMessages) String() string {
	s := strings.Join(p.shown, "; ")
	if p.more > 0 {
		s += fmt.Sprintf("; and %d more", p.more)
	}
	return s
}

// oneLine returns any text as one line of bounded length.
func oneLine(s string) string {
	return truncate.Text(strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " "), maxProblemBytes)
}
