// Package diff tells what a change of a policy means: who may get more, who may lose something,
// and which stored relationships or ids a new policy would no longer understand.
//
// It compares meaning, not text. Order, the split into files, comments, and unions in place of
// their members make no difference.
//
// The language only ever allows. So what is added may give somebody more and never takes anything
// away, what is removed never gives, and one class per change says all of it.
package diff
