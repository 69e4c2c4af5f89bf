// Package plan decides which changes make OpenSearch hold what objects declare.
//
// Input is all objects of one kind in a cluster, and the listing of the server. Output is an outcome for each object
// and ordered actions. The package does no I/O. It never changes an entity or an entry that the records of objects do
// not claim, unless an object adopts it.
package plan
