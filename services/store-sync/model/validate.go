package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"
)

// validateModel runs the validation that the OpenFGA server runs on a write, unless that would take too long.
func validateModel(m *openfgav1.AuthorizationModel) (err error) {
	if err := checkValidationCost(m); err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("OpenFGA's validation crashed: %v", r)
		}
	}()
	_, err = typesystem.NewAndValidate(context.Background(), m) // the context only carries a trace
	return err
}

// faultyModule is a unit that makes a model invalid, and the error.
type faultyModule struct {
	unit int
	err  error
}

// findFaultyModule finds a unit at fault in a set with an invalid model: its dependencies are valid, and it is not. If several
// units depend on each other, blame returns the one with the weakest claim without which the others are valid.
func (g *moduleGraph) findFaultyModule(in moduleSet, invalid error) faultyModule {
	f := g.findSuspectModule(in, invalid)
	depends := g.dependencyClosure(in, f.unit)
	below, circle := slices.Clone(depends), g.emptySet()
	for _, i := range depends.listMembers() {
		if g.dependencyClosure(in, i)[f.unit] {
			below[i], circle[i] = false, true
		}
	}
	if err := validateModel(g.mergeIntoModel(below)); err != nil {
		return g.findFaultyModule(below, err)
	}
	for _, i := range slices.Backward(circle.listMembers()) {
		others := g.emptySet()
		for k := range others {
			others[k] = !depends[k] || k == i
		}
		if g.units[i].OriginKind() != Core && g.units[i].whole == nil && validateModel(g.mergeIntoModel(g.resolveLiveModules(others))) == nil {
			return faultyModule{i, f.err}
		}
	}
	return f
}

// findSoleFaults finds the independent units of a set that are invalid beside the core module. No other unit can repair
// such a unit, and no other unit depends on whether it lives.
func (g *moduleGraph) findSoleFaults(in moduleSet) []faultyModule {
	core, alone := 0, g.emptySet()
	alone[core] = true
	if !in[core] || !g.isIndependent(core, core) || validateModel(g.mergeIntoModel(alone)) != nil {
		return nil
	}
	var faults []faultyModule
	for i, u := range g.units {
		if !in[i] || i == core || u.whole != nil || len(u.parts) > 0 || !g.isIndependent(i, core) {
			continue
		}
		if err := validateModel(g.mergeIntoModel(alone.withMember(i))); err != nil {
			faults = append(faults, faultyModule{i, err})
		}
	}
	return faults
}

// isIndependent reports whether only the core module and the unit itself define the names that the unit mentions.
func (g *moduleGraph) isIndependent(i, core int) bool {
	return !slices.ContainsFunc(g.mentionedNames(g.units[i]), func(n definitionName) bool {
		return slices.ContainsFunc(g.providers[n], func(k int) bool { return k != i && g.units[k].Origin != g.units[core].Origin })
	})
}

// findSuspectModule finds a unit whose model, together with its dependencies, is invalid. OpenFGA names the relation in most
// errors. For other errors it finds the first unit that makes its predecessors invalid by binary search: more units
// never make an invalid set valid.
func (g *moduleGraph) findSuspectModule(in moduleSet, invalid error) faultyModule {
	if r, ok := errors.AsType[*typesystem.InvalidRelationError](invalid); ok {
		for _, i := range g.providers[definitionName{typ: r.ObjectType, rel: r.Relation}] {
			if in[i] {
				return faultyModule{i, invalid}
			}
		}
	}
	units := in.listMembers()
	last := sort.Search(len(units)-1, func(k int) bool {
		return validateModel(g.mergeIntoModel(g.dependencyClosure(in, units[:k+1]...))) != nil
	})
	if err := validateModel(g.mergeIntoModel(g.dependencyClosure(in, units[:last+1]...))); err != nil {
		invalid = err
	}
	return faultyModule{units[last], invalid}
}

// faultMessage returns a message for users about a fault.
func (g *moduleGraph) faultMessage(f faultyModule) string {
	u := g.units[f.unit]
	if relation, ok := errors.AsType[*typesystem.InvalidRelationError](f.err); ok {
		n := definitionName{typ: relation.ObjectType, rel: relation.Relation}
		return u.source.positionOfDefinition(n).String() + relationFaultMessage(n, relation)
	}
	if costly, ok := errors.AsType[*validationCostError](f.err); ok {
		return u.source.positionOfDefinition(costly.name).String() + costly.Error()
	}
	return oneLine("OpenFGA refuses the model with this module: " + f.err.Error())
}

func relationFaultMessage(n definitionName, e *typesystem.InvalidRelationError) string {
	switch {
	case errors.Is(e, typesystem.ErrCycle):
		return n.String() + " is defined by itself, in a circle: break the circle"
	case errors.Is(e, typesystem.ErrNoEntrypoints), errors.Is(e, typesystem.ErrNoEntryPointsLoop):
		return n.String() + " can never hold for anybody: give it, or a relation it refers to, a type such as [user]"
	default:
		return e.Error()
	}
}
