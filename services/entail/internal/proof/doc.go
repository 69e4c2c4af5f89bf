// Package proof runs all services together on real servers. Its test lets everything
// go wrong that can and asks that OpenFGA ends up holding exactly what the objects ask
// for; its benchmarks measure what docs/benchmarks.md states.
package proof
