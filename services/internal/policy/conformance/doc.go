// Package conformance compiles what the policy language makes of policies with SpiceDB's own compiler.
// It is a module of its own so that SpiceDB is a dependency of this test and of nothing else.
package conformance
