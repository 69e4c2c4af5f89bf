// Package decide answers from memory who may do what to which object, and why: what OpenFGA
// answers by the model and the tuples of package iam.
//
// An [Index] is told of each declared object by itself, in any order, and keeps the little of it
// that matters. What one object says of another it keeps as it was said, by name and UID, and
// looks up when it is asked. So nothing has to be undone, and what comes late counts at once. Only
// what roles inherit is worked out before, since every question needs it.
package decide
