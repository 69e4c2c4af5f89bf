package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/iam"
)

// GeneratedTypes are a part of a model that follows from objects and not from a text. Their names contain a '/'. Beside such a
// part, no module may define or extend a type with such a name.
type GeneratedTypes interface {
	// LiveTypes returns the types in force in their present form. They get room before any text that is not live.
	LiveTypes() []*openfgav1.TypeDefinition
	// UnchangedTypes returns the types in force whose object has not changed. They get room before all others.
	UnchangedTypes() []*openfgav1.TypeDefinition
	// TypesWithin returns as many types as fit, those in force first.
	TypesWithin(types, bytes int) []*openfgav1.TypeDefinition
}

// PendingTypes holds no types yet, but reserves the names that they may have.
type PendingTypes struct{}

// LiveTypes implements [GeneratedTypes].
func (PendingTypes) LiveTypes() []*openfgav1.TypeDefinition { return nil }

// UnchangedTypes implements [GeneratedTypes].
func (PendingTypes) UnchangedTypes() []*openfgav1.TypeDefinition { return nil }

// TypesWithin implements [GeneratedTypes].
func (PendingTypes) TypesWithin(int, int) []*openfgav1.TypeDefinition { return nil }

// separateGeneratedTypes separates the module without a text from the others.
func separateGeneratedTypes(others []Module) (typed *Module, texts []Module) {
	i := slices.IndexFunc(others, func(m Module) bool { return m.Types != nil })
	if i < 0 {
		return nil, others
	}
	return &others[i], slices.Concat(others[:i], others[i+1:])
}

// mergeBesideTypes merges texts beside a module without a text. The types in force get room first, then the texts, and then
// the new types.
func mergeBesideTypes(typed, core Module, texts []Module, limits Limits) (MergeResult, error) {
	result, err := mergeTexts(core, texts, limits.limitsBesideTypes(typed.Types.LiveTypes()), true)
	if result.Model == nil || slices.ContainsFunc(texts, result.isLiveTextRejected) {
		roomier, roomierErr := mergeTexts(core, texts, limits.limitsBesideTypes(typed.Types.UnchangedTypes()), true)
		if result.Model == nil || slices.ContainsFunc(texts, func(m Module) bool { return result.isLiveTextRejected(m) && !roomier.isLiveTextRejected(m) }) {
			result, err = roomier, roomierErr
		}
	}
	if result.Model == nil || typed.Types == (PendingTypes{}) {
		return result, err
	}
	result.Room = limits.limitsBesideTypes(result.Model.GetTypeDefinitions())
	types := typed.Types.TypesWithin(result.Room.Types, result.Room.Bytes)
	result.Model.TypeDefinitions = append(result.Model.GetTypeDefinitions(), types...)
	slices.SortFunc(result.Model.GetTypeDefinitions(), func(a, b *openfgav1.TypeDefinition) int {
		return strings.Compare(a.GetType(), b.GetType())
	})
	for _, d := range ListDefinitions(&openfgav1.AuthorizationModel{TypeDefinitions: types}) {
		d.Origin = typed.Origin
		result.Definitions = append(result.Definitions, d)
	}
	slices.SortFunc(result.Definitions, Definition.compareDefinition)
	result.Reports = append(result.Reports, ModuleReport{
		Origin: typed.Origin, Module: typed.Origin.Kind.String(), State: Merged,
		Digest: iam.TypesDigest(types),
	})
	slices.SortStableFunc(result.Reports, func(a, b ModuleReport) int { return a.Origin.Compare(b.Origin) })
	return result, err
}

// isLiveTextRejected reports whether a text that was live has no part in the model.
func (r MergeResult) isLiveTextRejected(m Module) bool {
	report, _ := r.ReportOf(m.Origin)
	return m.Live != "" && report.State == Rejected
}

// limitsBesideTypes returns the limits without the room that the types need.
func (l Limits) limitsBesideTypes(types []*openfgav1.TypeDefinition) Limits {
	e := l.measureModel(&openfgav1.AuthorizationModel{TypeDefinitions: types})
	return Limits{Types: l.Types - e.Types, Bytes: l.Bytes - e.Bytes}
}

// rejectReservedNames rejects texts that define names reserved for the module without a text.
func (g *moduleGraph) rejectReservedNames() {
	for i, u := range g.units {
		n, claimed := u.firstReservedName()
		switch {
		case !claimed:
		case u.whole != nil:
			g.gone[i] = true
		default:
			u.broken = fmt.Sprintf("%s%s: the types of this store whose names hold a '/' are those of protected kinds: choose another name, without '/'",
				u.source.positionOfDefinition(n), n)
		}
	}
}

// firstReservedName returns the first reserved name that a unit defines or extends.
func (u *parsedModule) firstReservedName() (n definitionName, claimed bool) {
	for _, n := range slices.SortedFunc(maps.Keys(u.claims), definitionName.compareName) {
		if strings.Contains(n.typ, "/") {
			return n, true
		}
	}
	return definitionName{}, false
}
