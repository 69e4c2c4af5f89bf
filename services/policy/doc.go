// Package policy is an authorization policy language: who may act on what, stated by each service
// for its own resources in YAML documents that together form one policy. It compiles to what an
// engine for relationship-based access control takes: SpiceDB or OpenFGA.
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
//	actionBindings:                # who may do it: whoever meets one of the conditions
//	  - actionName: folder_open
//	    typeName: tenant
//	    conditions:
//	      - roleBinding: {}        # a role that was bound to the very resource gives the action
//	  - actionName: folder_open
//	    typeName: folder
//	    conditions:
//	      - roleBinding: {}
//	      - relationshipAction:    # so does the action on what the relation leads to
//	          relation: parent
//	          actionName: folder_open
//
// A file may hold several documents, and a policy be in any number of files: what one document
// declares, all others may refer to. No order of files, documents or items makes a difference. The
// language only ever allows; nothing takes away what something else gives.
//
// # The way of a policy
//
// Each step is a function without side effects, bounded in time and memory whatever it is given:
//
//	files --syntax.Parse--> documents --check.Documents--> a Policy --spicedb, openfga--> a schema, a model
//
// The packages are these:
//
//   - syntax has documents as they were written, and reads them from files.
//   - check makes one Policy of them; check.Files does both at once.
//   - spicedb and openfga compile a Policy, unless the engine would refuse the result.
//   - explain tells how somebody can come to an action, diff what a change of the policy does
//     to people and data, lint what was probably not meant; graph draws a Policy.
//   - format writes files the one way; report writes findings for people and programs.
//
// Mistakes are no Go errors but [Diagnostics]: all of them at once, each with its place, a [Code]
// that never changes its meaning, and a hint at what to do. As long as one is an [Error], there is
// no result.
//
// This package has what the others share: the [Policy], which is what documents mean together,
// valid, expanded and sorted, with the place of every name; [Options]; and Diagnostics. A Policy is
// never changed: any number of goroutines may use it.
package policy
