package model

import (
	"slices"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/precedence"
)

// fitting returns the units that live within the limits, and their valid model. Where there is no room for all, what is
// live already comes first, and then what is to change, by its claim: who does not fit keeps the last live text. Nothing
// that is live goes, unless the limits themselves became narrower: then what the API server serves, then the youngest.
func (g *graph) fitting(limits Limits) (set, *openfgav1.AuthorizationModel, error) {
	out := slices.Clone(g.gone)
	for i, u := range g.units {
		out[i] = out[i] || u.broken != ""
	}
	lives, model := g.accepted(out)
	if limits.exceeded(model) == nil {
		return lives, model, nil
	}
	waiting := g.newcomers(out)
	for _, i := range waiting {
		out[i] = true
	}
	lives, model = g.accepted(out)
	for err := limits.exceeded(model); err != nil; err = limits.exceeded(model) {
		if !g.spare(out, lives, err) {
			return lives, model, err
		}
		lives, model = g.accepted(out)
	}
	g.admit(out, waiting, limits)
	lives, model = g.accepted(out)
	return lives, model, nil
}

// newcomers returns the modules whose text was never live, by their claims.
func (g *graph) newcomers(out set) []int {
	var found []int
	for i, u := range g.units {
		if !out[i] && u.whole == nil && !u.settled {
			found = append(found, i)
		}
	}
	return found
}

// admit lets in what waits, with what it needs, as long as there is room, and tells all others that there is none.
func (g *graph) admit(out set, waiting []int, limits Limits) {
	possible := slices.Clone(out)
	for _, i := range waiting {
		possible[i] = false
	}
	for i := range possible {
		possible[i] = !possible[i]
	}
	for again := true; again; {
		again = false
		for _, i := range waiting {
			if !out[i] {
				continue
			}
			trial := slices.Clone(out)
			for k, needed := range g.closure(possible, i) {
				trial[k] = trial[k] && (!needed || !slices.Contains(waiting, k))
			}
			lives := g.resolve(trial)
			if !lives[i] {
				continue
			}
			if err := limits.exceeded(g.merge(lives)); err != nil {
				g.units[i].broken, g.units[i].exceeds = "there is no room for it: "+err.Error(), true
				continue
			}
			g.units[i].broken, g.units[i].exceeds, again = "", false, true
			copy(out, trial)
		}
	}
}

// spare takes out the live module that can be spared most easily; false if there is none.
func (g *graph) spare(out, lives set, why error) bool {
	least := -1
	for i, u := range g.units {
		if lives[i] && u.Kind() != Core && (least < 0 || precedence.Compare(u.claimed(precedence.None), g.units[least].claimed(precedence.None)) > 0) {
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

// Kind is that of the unit's origin.
func (u *unit) Kind() Kind { return u.Origin.Kind }
