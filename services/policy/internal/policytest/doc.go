// Package policytest makes valid policies for tests and benchmarks: random ones from a seed, and large ones of a given
// shape. [CanonicalYAML] writes policies with the same meaning as the same bytes.
package policytest
