// Package policytest makes policies for tests and benchmarks: valid ones, at random but the same for
// the same seed, and large ones of a given shape.
package policytest
