package model

import (
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"
)

// Merge makes one authorization model of a store's core module and its other modules. Neither the order of the other modules
// nor a rejected module among them has an influence on the model.
//
// If the core module cannot live the error is a *CoreError; if the model is too large for the limits it is a *LimitError.
// Then the result has reports, but no model.
func Merge(core Module, others []Module, limits Limits) (Result, error) {
	limits = limits.OrDefault()
	units := parse(append([]Module{core}, slices.SortedFunc(slices.Values(others), Module.compare)...), limits)
	g := newGraph(originals(units))
	lives, model := g.accepted()

	result := Result{Reports: make([]Report, len(units))}
	for i, u := range units {
		result.Reports[i] = g.report(u, lives)
	}
	if result.Reports[0].State != Merged {
		return result, &CoreError{result.Reports[0].Message}
	}
	if len(model.GetTypeDefinitions()) == 0 {
		return result, &CoreError{"no module defines a type: start with one, such as `type user`"}
	}
	if err := limits.exceeded(model); err != nil {
		return result, err
	}
	result.Model, result.Definitions = model, g.definitions(model, lives)
	return result, nil
}

// parse parses the modules; one that has the text of an earlier one, and is not for another API, becomes its duplicate.
func parse(modules []Module, limits Limits) []*unit {
	units := make([]*unit, len(modules))
	first := map[string]*unit{}
	for i, m := range modules {
		if fault := sentence(m.Fault); fault != "" {
			units[i] = &unit{Origin: m.Origin, broken: fault}
			continue
		}
		e := newEssence(m.DSL)
		text := e.String()
		original, known := first[text]
		if known && (m.API == original.api || m.API == "" || original.api == "") {
			units[i] = &unit{Origin: m.Origin, name: original.name, original: original}
			continue
		}
		units[i] = newUnit(m.Origin, e, limits)
		if units[i].api = m.API; !known {
			first[text] = units[i]
		}
	}
	return units
}

func originals(units []*unit) []*unit {
	return slices.DeleteFunc(slices.Clone(units), func(u *unit) bool { return u.original != nil })
}

// accepted returns the units that live, and their valid model. Every turn takes out one unit that is invalid for its own
// part, so that units which it stood in the way of come back.
func (g *graph) accepted() (set, *openfgav1.AuthorizationModel) {
	out := g.none()
	for i, u := range g.units {
		out[i] = u.broken != ""
	}
	for {
		lives := g.resolve(out)
		model := g.merge(lives)
		err := validate(model)
		if err == nil {
			return lives, model
		}
		f := g.blame(lives, err)
		out[f.unit] = true
		g.units[f.unit].broken = g.explain(f)
	}
}

// merge makes one model of a set of units that do not conflict. It leaves the units as they are.
//
// The metadata names the module of every type and condition, and of a relation whose module is not its type's.
// It names no source file: OpenFGA allows few names for files, and people know modules.
func (g *graph) merge(in set) *openfgav1.AuthorizationModel {
	types := map[string]*openfgav1.TypeDefinition{}
	conditions := map[string]*openfgav1.Condition{}
	for _, i := range in.members() {
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
	for _, i := range in.members() {
		for _, t := range g.units[i].extensions {
			addRelations(types[t.GetType()], t, g.units[i].name)
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

// addRelations adds the relations of one type definition to another; module is the module that extends the type, if one does.
func addRelations(to, from *openfgav1.TypeDefinition, module string) {
	for relation, rewrite := range from.GetRelations() {
		to.Relations[relation] = rewrite
		to.Metadata.Relations[relation] = &openfgav1.RelationMetadata{
			DirectlyRelatedUserTypes: from.GetMetadata().GetRelations()[relation].GetDirectlyRelatedUserTypes(),
			Module:                   module,
		}
	}
}
