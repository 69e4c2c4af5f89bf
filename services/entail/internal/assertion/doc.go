// Package assertion runs the assertions about a policy that its authors write down: with
// these relationships, this one may and that one may not. OpenFGA itself decides, embedded
// and in memory; where it decides otherwise than asserted, the package tells by which way
// a subject came to its permission, or where all ways end.
package assertion
