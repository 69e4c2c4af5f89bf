// Command run-tests runs the tests of every module and reports the result.
//
// Tests without servers run first and use Go's test cache. Tests on real servers run
// next, three packages at a time, the slowest first. Tests of chaos run alone, because
// they measure how fast services recover.
//
// A failing test runs again alone, twice at most. If it then passes, it is reported as
// flaky and the run succeeds. See [mayRerun] for the failures that count at once.
package main
