// Package diff reports the meaning of a policy change: which access it may add or remove, and which stored
// relationships or IDs the new policy would no longer recognize.
//
// It compares meaning, not text. Order, the split into files, comments, and unions in place of their members make no
// difference.
//
// The language only allows. So an addition may give access and never removes any, and a removal never gives any. One
// class describes each change completely.
package diff
