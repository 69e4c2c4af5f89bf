// Package policytest makes policies for tests and benchmarks: valid ones, at random but the same for
// the same seed, and large ones of a given shape. [Canonical] writes a policy so that two that say
// the same are the same bytes.
package policytest
