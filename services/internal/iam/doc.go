// Package iam defines the meaning of the objects of iam.miloapis.com. It covers permissions and their OpenFGA
// relations, and the permissions of a role. It also builds the authorization model, the tuples of each OpenFGA object,
// and the checks to send.
//
// A subject holds a permission on an object through a role on that object, on all objects of its kind, or on a parent.
// One grant per role and target lists the subjects. A change of the role therefore touches only the tuples of the role.
//
// Everything here is a pure function of the declared objects. Objects in deletion count as gone.
package iam
