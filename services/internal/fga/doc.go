// Package fga is the adapter to OpenFGA, over gRPC or, where its target is a URL, over HTTP. It
// hides pages, chunks, rate limits and the server's error codes; callers see stores, models,
// tuples and the classes of package fault.
//
// Things that OpenFGA does and that a caller must know:
//
//   - Only [Client.GetStore] and [Client.FindStores] tell whether a store exists.
//     DeleteStore hides the store and keeps its models and tuples: they can still
//     be read and written by id, without an error.
//   - Two stores may bear the same name.
//   - Every written model is a new version, even when nothing changed.
//   - A tuple's identity is (object, relation, user); the condition is its value.
package fga
