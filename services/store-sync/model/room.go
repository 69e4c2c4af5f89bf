package model

import (
	"slices"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/precedence"
)

// resolveWithinLimits returns the units that live within the limits, and their valid model. If the room does not suffice for all,
// live texts come first, then changed ones by their claims. A changed module without room keeps its last live text. A
// live text is dropped only if the limits themselves became narrower: first those that the API server serves, then the
// youngest.
func (g *moduleGraph) resolveWithinLimits(limits Limits) (moduleSet, *openfgav1.AuthorizationModel, error) {
	out := slices.Clone(g.gone)
	for i, u := range g.units {
		out[i] = out[i] || u.broken != ""
	}
	lives, model := g.acceptValidModules(out)
	if limits.checkModelSize(model) == nil {
		return lives, model, nil
	}
	waiting := g.notYetLiveModules(out)
	for _, i := range waiting {
		out[i] = true
	}
	lives, model = g.acceptValidModules(out)
	for err := limits.checkModelSize(model); err != nil; err = limits.checkModelSize(model) {
		if !g.dropWeakestModule(out, lives, err) {
			return lives, model, err
		}
		lives, model = g.acceptValidModules(out)
	}
	g.addModulesThatFit(out, waiting, limits)
	lives, model = g.acceptValidModules(out)
	return lives, model, nil
}

// notYetLiveModules returns the modules whose present text is not live yet, by their claims.
func (g *moduleGraph) notYetLiveModules(out moduleSet) []int {
	var found []int
	for i, u := range g.units {
		if !out[i] && u.whole == nil && !u.settled {
			found = append(found, i)
		}
	}
	return found
}

// addModulesThatFit adds waiting units, together with their needs, as long as they fit. It marks all others as without room.
func (g *moduleGraph) addModulesThatFit(out moduleSet, waiting []int, limits Limits) {
	possible, isWaiting := g.emptySet(), g.emptySet()
	for i := range possible {
		isWaiting[i] = slices.Contains(waiting, i)
		possible[i] = isWaiting[i] || !out[i]
	}
	var last roomTrial
	for again := true; again; {
		again = false
		for _, i := range waiting {
			if !out[i] {
				continue
			}
			trial := out.withoutMembers(g.dependencyClosure(possible, i), isWaiting)
			if !slices.Equal(trial, last.out) { // Units that need each other have the same trial.
				last = g.tryWithinLimits(trial, limits)
			}
			if !last.lives[i] {
				continue
			}
			if err := last.tooLarge; err != nil {
				g.units[i].broken, g.units[i].exceeds = "there is no room for it: "+err.Error(), true
				continue
			}
			g.units[i].broken, g.units[i].exceeds, again = "", false, true
			copy(out, trial)
		}
	}
}

// roomTrial is the result of a trial: the units that live if those in out do not, and why their model is too large.
type roomTrial struct {
	out, lives moduleSet
	tooLarge   error
}

func (g *moduleGraph) tryWithinLimits(out moduleSet, limits Limits) roomTrial {
	lives := g.resolveLiveModules(out)
	return roomTrial{out, lives, limits.checkModelSize(g.mergeIntoModel(lives))}
}

// dropWeakestModule drops the living module with the weakest claim. It returns false if only the core module is left.
func (g *moduleGraph) dropWeakestModule(out, lives moduleSet, why error) bool {
	least := -1
	for i, u := range g.units {
		if lives[i] && u.OriginKind() != Core && (least < 0 || precedence.Compare(u.claimWithLiveness(precedence.None),
			g.units[least].claimWithLiveness(precedence.None)) > 0) {
			least = i
		}
	}
	if least < 0 {
		return false
	}
	for i, u := range g.units {
		if u.Origin == g.units[least].Origin {
			out[i], u.exceeds, u.broken = true, true, "there is no room for it any more: "+why.Error()
		}
	}
	return true
}

// OriginKind returns the kind of the unit's origin.
func (u *parsedModule) OriginKind() OriginKind { return u.Origin.Kind }
