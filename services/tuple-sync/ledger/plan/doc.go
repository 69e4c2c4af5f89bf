// Package plan decides what to do about the declared tuples of one OpenFGA store, without I/O.
//
// OpenFGA does not know on whose behalf a tuple is there, so every owner keeps a
// record, in its own status, of the tuples that are or may be in the store for it.
// Two rules make the record trustworthy at any moment, whoever crashes:
//
//   - A tuple is in OpenFGA only while some owner's record lists it: records are
//     extended before tuples are written and shortened after they are deleted.
//   - An owner is in step, which its condition says, only while all that its record
//     lists is in OpenFGA. Before anything of an owner is touched it is marked
//     [Syncing], by compare-and-swap, so that whoever acts on an old state fails
//     before it can do harm, and whoever comes later writes everything again.
//
// [Make] turns the owners of a store into a [Plan] that keeps both rules.
package plan
