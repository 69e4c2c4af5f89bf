// Package modeltest checks the model of a Store against docs/models.md, over random histories of the objects it is merged from.
package modeltest

import "testing"

// CoreName and RolesName name the two objects of which a Store has one each, in [State].
const (
	CoreName  = "core"
	RolesName = "roles"
)

// World holds what is declared at one moment.
type World struct {
	// Core is spec.coreModule of the Store.
	Core string
	// RolesType reports whether the Store's annotation names role#assignee, which Core declares then.
	// Otherwise PolicyDocuments use role#subject, of the roles' module or of a person's.
	RolesType  bool
	Modules    []Module
	Documents  []Document
	Discovered []Discovered // Empty while discovery is off.
}

// Module is an AuthorizationModel that a person wrote. State calls it "authorizationmodel/NAME".
type Module struct {
	Name    string
	Created int    // Created orders objects by age. An object that is made again has another.
	Text    string // Text is spec.model.
}

// Document is a PolicyDocument. State calls it "policydocument/NAME".
type Document struct {
	Name    string
	Created int    // Created orders Modules and Documents by age.
	Text    string // Text is YAML of resourceTypes, unions, actions and actionBindings, with the keys of the spec.
}

// Discovered is the module of a resource of the API server. State calls it "discovered/NAME".
type Discovered struct {
	Name string // Name is the plural, such as "secrets".
	Text string // Text is the module that the service generated.
}

// State holds what is live in the merged model.
type State struct {
	// Definitions maps "type", "type#relation" and "condition NAME" to the text, as [Definitions] returns it.
	Definitions map[string]string
	// Owners maps the keys of Definitions to the object that each is from.
	Owners map[string]string
	// Live maps an object to its text that is live: the declared one, if all of it is. A document without types has one, too.
	Live map[string]string
}

// System is under test. Settle gives it the next world, and returns what is live once all has settled.
type System interface {
	Settle(w World) (State, error)
}

// Run gives random histories of the given number of worlds to new systems, one history for each round.
// It reports the first difference from the documentation, with the seed and the shortest history found.
func Run(t testing.TB, rounds int, seed uint64, start func() System) {
	t.Helper()
	_, _, _ = rounds, seed, start
}
