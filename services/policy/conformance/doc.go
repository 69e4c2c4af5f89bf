// Package conformance holds what the policy language compiles to against the engines themselves:
// SpiceDB's own compiler and evaluator, OpenFGA's library, and a server of OpenFGA. It is a module
// of its own so that they are dependencies of these tests and of nothing else.
package conformance
