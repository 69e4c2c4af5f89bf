// Package modeltest checks the merged model of a Store against docs/guides/stores-and-models.md.
//
// It generates random histories of the objects that a Store merges, applies each history to a system under test, and
// checks every state. It removes steps and objects from a failing history as long as it still fails. It does not
// predict the model; it checks the documented properties.
package modeltest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// CoreName and RolesName name two objects in [LiveState]: the core module and the module that defines roles. A Store
// has one of each.
const (
	CoreName  = "core"
	RolesName = "roles"
)

// Declarations holds all declarations at one moment.
type Declarations struct {
	// Core is spec.coreModule of the Store.
	Core string
	// RolesType means that the Store's annotation names role#assignee, which Core then declares. Otherwise
	// PolicyDocuments use role#subject, which the roles' module or a user's module defines.
	RolesType  bool
	Modules    []Module
	Documents  []Document
	Discovered []DiscoveredModule // empty while discovery is off
}

// Module is an AuthorizationModel of a user. [LiveState] lists it as "authorizationmodel/NAME".
type Module struct {
	Name    string
	Created int    // orders objects by age; a new object with the same name has a new value
	Text    string // spec.model
}

// Document is a PolicyDocument. [LiveState] lists it as "policydocument/NAME".
type Document struct {
	Name    string
	Created int    // orders Modules and Documents by age
	Text    string // YAML of resourceTypes, unions, actions and actionBindings, with the keys of the spec
}

// DiscoveredModule is the module that discovery makes from an API resource. [LiveState] lists it as "discovered/NAME".
type DiscoveredModule struct {
	Name string // the plural, such as "secrets"
	Text string // the generated module
}

// LiveState holds the live part of the merged model.
type LiveState struct {
	// Definitions maps "type", "type#relation" and "condition NAME" to the text, as [ModelDefinitions] returns it.
	Definitions map[string]string
	// Owners maps the keys of Definitions to the objects that own them.
	Owners map[string]string
	// Live maps an object to its live text. The declared text is live only if all its definitions are live. Documents
	// without types are included. Without a model, the live text of a document is its last valid text.
	Live map[string]string
}

// SystemUnderTest applies declarations. ApplyAndSettle applies the next world and returns the live state once it no
// longer changes.
type SystemUnderTest interface {
	ApplyAndSettle(w Declarations) (LiveState, error)
}

// CheckRandomHistories applies each random history to a new system. It reports the first difference from the
// documentation, with the seed and the shortest failing history that it finds.
func CheckRandomHistories(t testing.TB, rounds int, seed uint64, start func() SystemUnderTest) {
	t.Helper()
	for round := range rounds {
		worlds := randomHistory(rand.New(rand.NewPCG(seed, uint64(round))), discovered)
		if findDifference(worlds, start) != nil {
			worlds = shrinkHistory(worlds, start)
			t.Fatalf("seed %d, history %d: %v; the worlds:\n%s", seed, round, findDifference(worlds, start), describeHistory(worlds))
		}
	}
}

// CheckRareHistories applies histories that random ones seldom contain. See [CheckRandomHistories].
func CheckRareHistories(t testing.TB, start func() SystemUnderTest) {
	t.Helper()
	for _, worlds := range rareHistories() {
		if err := findDifference(worlds, start); err != nil {
			t.Errorf("%v; the worlds:\n%s", err, describeHistory(worlds))
		}
	}
}

// CheckServedHistories applies random histories to a slow system whose API server serves the resources in served.
// Unlike [CheckRandomHistories], it does not shorten a failing history.
func CheckServedHistories(t testing.TB, rounds int, seed uint64, served []DiscoveredModule, start func() SystemUnderTest) {
	t.Helper()
	for round := range rounds {
		worlds := randomHistory(rand.New(rand.NewPCG(seed, uint64(round))), served)
		if err := findDifference(worlds, start); err != nil {
			t.Fatalf("seed %d, history %d: %v; the worlds:\n%s", seed, round, err, describeHistory(worlds))
		}
	}
}

// findDifference returns how a new system differs from the documentation, or nil.
func findDifference(worlds []Declarations, start func() SystemUnderTest) error {
	system, reference := start(), referenceChecker{texts: newCachingParser(), before: newOwnedDefinitions()}
	for _, w := range worlds {
		state, err := system.ApplyAndSettle(w)
		if err == nil {
			err = reference.checkState(w, state)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shrinkHistory removes worlds and objects while the history still fails.
func shrinkHistory(worlds []Declarations, start func() SystemUnderTest) []Declarations {
	for {
		shorter := slices.IndexFunc(simplerHistories(worlds), func(w []Declarations) bool { return findDifference(w, start) != nil })
		if shorter < 0 {
			return worlds
		}
		worlds = simplerHistories(worlds)[shorter]
	}
}

// simplerHistories returns the histories with one world or one object less.
func simplerHistories(worlds []Declarations) (all [][]Declarations) {
	names := map[string]bool{}
	for i, w := range worlds {
		all = append(all, slices.Delete(slices.Clone(worlds), i, i+1))
		for name := range textsByObject(w) {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fewer := slices.Clone(worlds)
		for i, w := range fewer {
			fewer[i].Modules = slices.DeleteFunc(slices.Clone(w.Modules), func(m Module) bool { return "authorizationmodel/"+m.Name == name })
			fewer[i].Documents = slices.DeleteFunc(slices.Clone(w.Documents), func(d Document) bool { return "policydocument/"+d.Name == name })
			fewer[i].Discovered = slices.DeleteFunc(slices.Clone(w.Discovered), func(d DiscoveredModule) bool { return "discovered/"+d.Name == name })
		}
		if name != CoreName && describeHistory(fewer) != describeHistory(worlds) {
			all = append(all, fewer)
		}
	}
	return all
}

// textsByObject returns the texts of a world by object, with the creation order of each object.
func textsByObject(w Declarations) map[string]string {
	all := map[string]string{CoreName: w.Core}
	for _, m := range w.Modules {
		all["authorizationmodel/"+m.Name] = fmt.Sprintf("# created: %d\n%s", m.Created, m.Text)
	}
	for _, d := range w.Documents {
		all["policydocument/"+d.Name] = fmt.Sprintf("# created: %d\n%s", d.Created, d.Text)
	}
	for _, d := range w.Discovered {
		all["discovered/"+d.Name] = d.Text
	}
	return all
}

// describeHistory returns the changes from world to world as text.
func describeHistory(worlds []Declarations) string {
	var out strings.Builder
	last := map[string]string{}
	for i, w := range worlds {
		fmt.Fprintf(&out, "== world %d, the type of roles is given: %v\n", i, w.RolesType)
		now := textsByObject(w)
		for _, name := range slices.Sorted(maps.Keys(last)) {
			if _, ok := now[name]; !ok {
				fmt.Fprintf(&out, "-- %s: deleted\n", name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(now)) {
			if now[name] != last[name] {
				fmt.Fprintf(&out, "-- %s:\n%s", name, now[name])
			}
		}
		last = now
	}
	return out.String()
}
