// Package fga is the adapter to OpenFGA. It uses gRPC, or HTTP if the target is a URL. It hides pages, chunks, rate
// limits and the server's error codes. Callers see stores, models, tuples and the error classes of package fault.
//
// Callers must consider these properties of OpenFGA:
//   - Only [Client.GetStore] and [Client.FindStores] report whether a store exists. DeleteStore only hides the store:
//     its models and tuples can still be read and written by ID, without an error.
//   - Two stores can have the same name.
//   - Every written model is a new version, even if nothing changed.
//   - A tuple's identity is (object, relation, user); the condition is its value.
package fga
