// Package openfga compiles a policy to an OpenFGA authorization model: in DSL for people,
// in JSON for the API, or as modules, one for who provides each document.
//
//	type tenant
//	  relations
//	    define loadbalancer_get: loadbalancer_get_role or loadbalancer_get from parent
//	    define loadbalancer_get_role: [role#subject]
//	    define parent: [tenant]
//
// Everything is sorted, so that one policy is one model. [Check] refuses what OpenFGA would.
// What is written for a policy that passes says the same in all forms.
package openfga
