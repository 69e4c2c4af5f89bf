// Package openfga compiles a policy to an OpenFGA authorization model: as DSL for people, as JSON for the API, or as
// modules, one for each owner of documents.
//
//	type tenant
//	  relations
//	    define loadbalancer_get: loadbalancer_get_role or loadbalancer_get from parent
//	    define loadbalancer_get_role: [role#subject]
//	    define parent: [tenant]
//
// The output is sorted, so that a policy always gives the same model. [CheckModel] rejects policies that OpenFGA would
// reject. All forms of a policy that passes have the same meaning.
package openfga
