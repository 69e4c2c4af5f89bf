// Package iam defines the meaning of the objects of iam.miloapis.com. From the declared objects it computes the
// registry of kinds and permissions, the authorization model, the tuples of each OpenFGA object, and the checks.
//
// A subject holds a permission on an object through a role on that object, on all objects of its kind, or on a parent.
// One grant object per role and target lists the subjects. So a change of a role changes only the tuples of the role.
//
// Everything here is a pure function of the declared objects. Objects in deletion count as deleted.
package iam
