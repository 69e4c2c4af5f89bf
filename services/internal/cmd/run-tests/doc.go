// Command run-tests runs the tests of all modules and reports the result.
//
// Tests without servers run first and use Go's test cache. Tests on real servers run next, a few packages at a time,
// the slowest first. Chaos tests run alone, because they measure how fast services recover.
//
// A failing test runs again alone, at most twice. If it then passes, it is reported as flaky, and the run succeeds.
// [findRerunnableTest] lists failures that do not run again.
package main
