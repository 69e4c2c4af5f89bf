// Package assertion runs the assertions that authors write about a policy: with these relationships, this subject may
// and that one may not. An embedded OpenFGA in memory decides. If its answer differs from an assertion, the package
// returns the path by which the subject has the action, or the ends of all paths.
package assertion
