// Package conformance compares the output of the compilers with the engines themselves: SpiceDB's own compiler and
// evaluator, OpenFGA's library, and an OpenFGA server. It is a separate module, so that only these tests depend on the
// engines.
package conformance
