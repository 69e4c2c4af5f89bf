package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/iam"
)

// Types are a part of a model that follows from objects and not from a text. Their names contain a '/'. Beside such a
// part, no module may define or extend a type with such a name.
type Types interface {
	// Live returns the types in force in their present form. They get room before any text that is not live.
	Live() []*openfgav1.TypeDefinition
	// Unchanged returns the types in force whose object has not changed. They get room before all others.
	Unchanged() []*openfgav1.TypeDefinition
	// Within returns as many types as fit, those in force first.
	Within(types, bytes int) []*openfgav1.TypeDefinition
}

// None holds no types yet, but reserves the names that they may have.
type None struct{}

// Live implements [Types].
func (None) Live() []*openfgav1.TypeDefinition { return nil }

// Unchanged implements [Types].
func (None) Unchanged() []*openfgav1.TypeDefinition { return nil }

// Within implements [Types].
func (None) Within(int, int) []*openfgav1.TypeDefinition { return nil }

// separateTyped separates the module without a text from the others.
func separateTyped(others []Module) (typed *Module, texts []Module) {
	i := slices.IndexFunc(others, func(m Module) bool { return m.Types != nil })
	if i < 0 {
		return nil, others
	}
	return &others[i], slices.Concat(others[:i], others[i+1:])
}

// mergeAround merges texts beside a module without a text. The types in force get room first, then the texts, and then
// the new types.
func mergeAround(typed, core Module, texts []Module, limits Limits) (Result, error) {
	result, err := mergeTexts(core, texts, limits.withoutTypes(typed.Types.Live()), true)
	if result.Model == nil || slices.ContainsFunc(texts, result.isEvicted) {
		roomier, roomierErr := mergeTexts(core, texts, limits.withoutTypes(typed.Types.Unchanged()), true)
		if result.Model == nil || slices.ContainsFunc(texts, func(m Module) bool { return result.isEvicted(m) && !roomier.isEvicted(m) }) {
			result, err = roomier, roomierErr
		}
	}
	if result.Model == nil || typed.Types == (None{}) {
		return result, err
	}
	result.Room = limits.withoutTypes(result.Model.GetTypeDefinitions())
	types := typed.Types.Within(result.Room.Types, result.Room.Bytes)
	result.Model.TypeDefinitions = append(result.Model.GetTypeDefinitions(), types...)
	slices.SortFunc(result.Model.GetTypeDefinitions(), func(a, b *openfgav1.TypeDefinition) int {
		return strings.Compare(a.GetType(), b.GetType())
	})
	for _, d := range Definitions(&openfgav1.AuthorizationModel{TypeDefinitions: types}) {
		d.Origin = typed.Origin
		result.Definitions = append(result.Definitions, d)
	}
	slices.SortFunc(result.Definitions, Definition.compareDefinition)
	result.Reports = append(result.Reports, Report{Origin: typed.Origin, Module: typed.Origin.Kind.String(), State: Merged, Digest: iam.Digest(types)})
	slices.SortStableFunc(result.Reports, func(a, b Report) int { return a.Origin.Compare(b.Origin) })
	return result, err
}

// isEvicted reports whether a text that was live has no part in the model.
func (r Result) isEvicted(m Module) bool {
	report, _ := r.Report(m.Origin)
	return m.Live != "" && report.State == Rejected
}

// withoutTypes returns the limits without the room that the types need.
func (l Limits) withoutTypes(types []*openfgav1.TypeDefinition) Limits {
	e := l.exceededLimit(&openfgav1.AuthorizationModel{TypeDefinitions: types})
	return Limits{Types: l.Types - e.Types, Bytes: l.Bytes - e.Bytes}
}

// rejectReserved rejects texts that define names reserved for the module without a text.
func (g *graph) rejectReserved() {
	for i, u := range g.units {
		n, claimed := u.firstReserved()
		switch {
		case !claimed:
		case u.whole != nil:
			g.gone[i] = true
		default:
			u.broken = fmt.Sprintf("%s%s: the types of this store whose names hold a '/' are those of protected kinds: choose another name, without '/'",
				u.source.findDefinition(n), n)
		}
	}
}

// firstReserved returns the first reserved name that a unit defines or extends.
func (u *parsedModule) firstReserved() (n name, claimed bool) {
	for _, n := range slices.SortedFunc(maps.Keys(u.claims), name.compareName) {
		if strings.Contains(n.typ, "/") {
			return n, true
		}
	}
	return name{}, false
}
