// Package proof runs all services together on real servers. Its tests check what one service alone cannot show.
// Its benchmarks measure what docs/design/benchmarks.md states.
package proof
