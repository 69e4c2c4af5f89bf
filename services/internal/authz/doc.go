// Package authz decides from memory whether a subject has a permission on an object, and by which binding. Its answers
// equal those of OpenFGA with the model and the tuples of package iam.
//
// An [Index] receives each declared object separately, in any order. It stores references between objects as declared,
// by name and UID, and resolves them at each query. So a deletion changes no other object, and an object that arrives
// late takes effect at once. Only the permissions that roles inherit are computed in advance, because every query
// needs them.
package authz
