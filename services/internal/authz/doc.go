// Package authz answers from memory who may do what to which object, and why. Its answers equal those of OpenFGA with
// the model and the tuples of package iam.
//
// An [Index] receives each declared object separately, in any order. It stores references between objects as declared,
// by name and UID, and resolves them when it answers a question. So nothing must be undone, and an object that arrives
// late counts at once. Only the permissions that roles inherit are computed in advance, because every question needs
// them.
package authz
