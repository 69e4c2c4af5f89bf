// Package policy is an authorization policy language. Each service declares access to its own resources in YAML
// documents, and all documents together form one policy. A policy compiles to the schema of SpiceDB or the model of
// OpenFGA, two engines for relationship-based access control.
//
// # The language
//
//	# Provided by storage-api
//	resourceTypes:                 # what there is, and how it is related
//	  - name: tenant
//	    idPrefix: tnnt             # ids of tenants begin with it
//	  - name: folder
//	    idPrefix: fldr
//	    relationships:
//	      - relation: parent
//	        targetTypes:
//	          - name: container
//	unions:                        # names for several types
//	  - name: container
//	    resourceTypes:
//	      - name: folder
//	      - name: tenant
//	actions:                       # what can be done
//	  - name: folder_open
//	actionBindings:                # subjects that meet one of the conditions may do it
//	  - actionName: folder_open
//	    typeName: tenant
//	    conditions:
//	      - roleBinding: {}        # a role that is bound to this resource gives the action
//	  - actionName: folder_open
//	    typeName: folder
//	    conditions:
//	      - roleBinding: {}
//	      - relationshipAction:    # so does the action on a target of the relation
//	          relation: parent
//	          actionName: folder_open
//
// A file may hold several documents, and a policy may have any number of files. Each document may refer to the
// declarations of all others. The order of files, documents and items makes no difference. The language only allows:
// no rule takes away access that another one gives.
//
// # The steps of a policy
//
// Each step is a function without side effects, with bounds on time and memory for any input:
//
//	files --syntax.Parse--> documents --check.Documents--> a Policy --spicedb, openfga--> a schema, a model
//
// The packages are these:
//
//   - syntax contains documents in their written form, and reads them from files.
//   - check makes one Policy of them; check.Files does both steps at once.
//   - spicedb and openfga compile a Policy, unless the engine would reject the result.
//   - explain shows how a subject can get an action. diff shows the effect of a policy change on users and data.
//     lint reports probable mistakes. graph draws a Policy.
//   - format writes files in one standard form; report writes findings for people and programs.
//
// Mistakes are not Go errors but [Diagnostics]. A step returns all of them at once, each with its place, a [Code] with
// a fixed meaning, and a hint. If one of them is an [Error], the step has no result.
//
// This package contains the types that the others share: [Policy], [Options] and [Diagnostics]. A Policy is the
// combined meaning of the documents: valid, expanded and sorted, with the place of every name. It never changes, so
// any number of goroutines may use it.
package policy
