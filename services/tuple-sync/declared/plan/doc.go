// Package plan decides what to do about the declared tuples of one OpenFGA store, without I/O.
//
// OpenFGA does not store which owner a tuple belongs to. Therefore each owner records, in its own status, the tuples
// that are or may be in the store for it. Two rules make the record reliable at any moment, whichever replica crashes:
//
//   - A tuple is in OpenFGA only while some owner's record lists it: records are extended before tuples are written and
//     shortened after they are deleted.
//   - An owner's condition reports that it is in step only while OpenFGA holds everything that its record lists. Before
//     any of its tuples change, it is marked [Syncing], by compare-and-swap. A replica with an old state thereby fails
//     before it does harm, and a later one writes everything again.
//
// [DecideStore] turns the owners of a store into a [Plan] that keeps both rules.
package plan
