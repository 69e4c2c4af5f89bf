package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"

	"github.com/entail-dev/entail/services/internal/precedence"
)

// Merge makes one authorization model from a store's core module and its other modules. The order of the other modules
// does not matter, and a rejected module among them has no influence on the model.
//
// If no part of the core module can live, the error is a [*CoreError]. If the live part is already too large for the
// limits and no module can be dropped, the error is a [*LimitError]. In both cases the result has reports, but no
// model.
func Merge(core Module, others []Module, limits Limits) (MergeResult, error) {
	limits = limits.OrDefault()
	if typed, texts := separateGeneratedTypes(others); typed != nil {
		return mergeBesideTypes(*typed, core, texts, limits)
	}
	return mergeTexts(core, others, limits, false)
}

// mergeTexts merges modules in DSL. With reserved, no module may define or extend a type with a reserved name. It merges
// again while rejected modules lose parts of their last live texts: such a part may be all that needed another one.
func mergeTexts(core Module, others []Module, limits Limits, reserved bool) (MergeResult, error) {
	result, err := mergeTextsOnce(core, others, limits, reserved)
	if err != nil || !slices.ContainsFunc(result.Reports, ModuleReport.hasLostLivePart) {
		return result, err
	}
	left := slices.Concat([]Module{core}, others)
	for i := range left {
		if r, known := result.ReportOf(left[i].Origin); known && r.hasLostLivePart() {
			left[i].Live = r.Live
		}
	}
	again, err := mergeTexts(left[0], left[1:], limits, reserved)
	for i, r := range again.Reports {
		before, _ := result.ReportOf(r.Origin)
		again.Reports[i].Takes = r.Takes || before.Takes
	}
	return again, err
}

// mergeTextsOnce merges modules in DSL with their last live texts as they are.
func mergeTextsOnce(core Module, others []Module, limits Limits, reserved bool) (MergeResult, error) {
	units := parseModules(core, others, limits)
	g := newModuleGraph(units)
	if reserved {
		g.rejectReservedNames()
	}
	baseless := g.dropModulesOfUndefinedTypes()
	lives, model, tooLarge := g.resolveWithinLimits(limits)
	if lives[units[0].index] && !g.hasLiveType(lives) {
		units[0].broken = "no module defines a type: start with one, such as `type user`"
		lives, model, tooLarge = g.resolveWithinLimits(limits)
	}

	result := MergeResult{}
	for _, u := range slices.SortedFunc(slices.Values(units), compareReportOrder) {
		if !baseless[u.Base] {
			result.Reports = append(result.Reports, g.reportModule(u, lives))
		}
	}
	if result.Reports[0].State == Rejected {
		return result, &CoreError{result.Reports[0].Message}
	}
	if tooLarge != nil {
		return result, tooLarge
	}
	result.Model, result.Definitions = model, g.definitionsWithOrigins(model, lives)
	return result, nil
}

// dropModulesOfUndefinedTypes drops the modules that build on a type which the live core module does not define, and returns these
// types.
func (g *moduleGraph) dropModulesOfUndefinedTypes() map[string]bool {
	out, baseless := slices.Clone(g.gone), map[string]bool{}
	if !slices.ContainsFunc(g.units, func(u *parsedModule) bool { return u.Base != "" }) {
		return baseless
	}
	for i, u := range g.units {
		out[i] = out[i] || u.broken != ""
	}
	lives := g.resolveLiveModules(out)
	for i, u := range g.units {
		if u.Base == "" {
			continue
		}
		definer := g.definerOf(definitionName{typ: u.Base}, lives)
		if baseless[u.Base] = definer == nil || definer.OriginKind() != Core; baseless[u.Base] {
			g.gone[i] = true
		}
	}
	return baseless
}

// hasLiveType reports whether a living module defines a type. OpenFGA refuses a model without types.
func (g *moduleGraph) hasLiveType(lives moduleSet) bool {
	return slices.ContainsFunc(g.units, func(u *parsedModule) bool { return lives[u.index] && u.whole == nil && len(u.types) > 0 })
}

// compareReportOrder orders modules for the reports.
func compareReportOrder(a, b *parsedModule) int {
	return cmp.Or(a.Origin.Compare(b.Origin), cmp.Compare(a.DSL, b.DSL))
}

// parseModules parses the modules. A module with the text of another one that has a better claim becomes its duplicate, unless
// the two are for different APIs.
func parseModules(core Module, others []Module, limits Limits) []*parsedModule {
	modules := make([]moduleSource, 0, len(others)+1)
	for _, m := range append([]Module{core}, others...) {
		modules = append(modules, newModuleSource(m))
	}
	slices.SortFunc(modules[1:], moduleSource.compareClaims)
	units := make([]*parsedModule, len(modules))
	known := map[string]*parsedModule{}
	for i, m := range modules {
		units[i] = m.parseUnlessDuplicate(known, limits)
		units[i].Module = m.Module
		units[i].settled, units[i].live = m.settled, m.parseLiveText(units[i])
	}
	return units
}

// moduleSource is a module before it is parsed.
type moduleSource struct {
	Module

	normalized normalizedText
	text       string
	// settled means that the text is the last live one.
	settled bool
}

func newModuleSource(m Module) moduleSource {
	s := moduleSource{Module: m, normalized: normalizeText(m.DSL)}
	s.text = s.normalized.String()
	s.settled = m.Live != "" && m.Fault == "" && s.text == normalizeText(m.Live).String()
	return s
}

// compareClaims orders modules by their claims.
func (s moduleSource) compareClaims(o moduleSource) int {
	return cmp.Or(precedence.Compare(s.precedenceClaim(), o.precedenceClaim()), cmp.Compare(s.DSL, o.DSL))
}

// precedenceClaim returns the module's claim to all names that its present text defines.
func (s moduleSource) precedenceClaim() precedence.Claim {
	if s.settled {
		return s.claimWithLiveness(precedence.Present)
	}
	return s.claimWithLiveness(precedence.None)
}

// parseUnlessDuplicate parses the module, or marks it as a duplicate of one with the same text.
func (s moduleSource) parseUnlessDuplicate(known map[string]*parsedModule, limits Limits) *parsedModule {
	if fault := oneLine(s.Fault); fault != "" {
		return &parsedModule{broken: fault}
	}
	original := known[s.text]
	if original != nil && (s.API == original.API || s.API == "" || original.API == "") {
		return &parsedModule{name: original.name, original: original}
	}
	u := parseModuleText(s.normalized, limits)
	if original == nil {
		known[s.text] = u
	}
	return u
}

// withoutDuplicates returns the units that are no duplicates.
func withoutDuplicates(units []*parsedModule) []*parsedModule {
	return slices.DeleteFunc(slices.Clone(units), func(u *parsedModule) bool { return u.original != nil })
}

// soleFaultRounds is the number of rounds in which [moduleGraph.acceptValidModules] drops one unit at a time. Then it
// drops all units at once that are at fault alone. A few invalid units do not justify a validation of each unit.
const soleFaultRounds = 4

// acceptValidModules returns the living units, none of them in out, and their valid model. Every round adds one invalid unit to
// out, so that units it conflicted with can return.
func (g *moduleGraph) acceptValidModules(out moduleSet) (moduleSet, *openfgav1.AuthorizationModel) {
	for round := 1; ; round++ {
		lives := g.resolveLiveModules(out)
		model := g.mergeIntoModel(lives)
		err := validateModel(model)
		if err == nil {
			return lives, model
		}
		faults := []faultyModule{g.findFaultyModule(lives, err)}
		if round == soleFaultRounds {
			faults = append(faults, g.findSoleFaults(lives)...)
		}
		for _, f := range faults {
			out[f.unit] = true
			g.units[f.unit].broken = g.faultMessage(f)
		}
	}
}

// mergeIntoModel makes one model from a set of units without conflicts. It does not change the units.
//
// The metadata names the module of every type and condition, and of a relation whose module differs from its type's. It
// names no source file: OpenFGA restricts the names of files, and users know modules.
func (g *moduleGraph) mergeIntoModel(in moduleSet) *openfgav1.AuthorizationModel {
	types := map[string]*openfgav1.TypeDefinition{}
	conditions := map[string]*openfgav1.Condition{}
	for _, i := range in.listMembers() {
		for _, t := range g.units[i].types {
			types[t.GetType()] = &openfgav1.TypeDefinition{
				Type:      t.GetType(),
				Relations: map[string]*openfgav1.Userset{},
				Metadata:  &openfgav1.Metadata{Module: g.units[i].name, Relations: map[string]*openfgav1.RelationMetadata{}},
			}
			addRelations(types[t.GetType()], t, "")
		}
		maps.Copy(conditions, g.units[i].conditions)
	}
	for _, i := range in.listMembers() {
		for _, t := range g.units[i].extensions {
			by := g.units[i].name
			if host := g.units[i].host; host != nil && in[host.index] {
				by = ""
			}
			addRelations(types[t.GetType()], t, by)
		}
	}
	model := &openfgav1.AuthorizationModel{SchemaVersion: typesystem.SchemaVersion1_2, Conditions: conditions}
	for _, t := range types {
		model.TypeDefinitions = append(model.TypeDefinitions, t)
	}
	slices.SortFunc(model.GetTypeDefinitions(), func(a, b *openfgav1.TypeDefinition) int {
		return strings.Compare(a.GetType(), b.GetType())
	})
	return model
}

// addRelations adds the relations of one type definition to another. module names the module that extends the type, if
// any.
func addRelations(to, from *openfgav1.TypeDefinition, module string) {
	for relation, rewrite := range from.GetRelations() {
		to.Relations[relation] = rewrite
		to.Metadata.Relations[relation] = &openfgav1.RelationMetadata{
			DirectlyRelatedUserTypes: from.GetMetadata().GetRelations()[relation].GetDirectlyRelatedUserTypes(),
			Module:                   module,
		}
	}
}
