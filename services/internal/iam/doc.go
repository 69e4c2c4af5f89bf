// Package iam says what the objects of iam.miloapis.com mean: which permissions there are and
// under which relations OpenFGA knows them, what a role gives, the model that follows from all
// ProtectedResources, which tuples each object of OpenFGA holds, and what to ask OpenFGA.
//
// A permission is held on an object by whoever has a role with it there, on all objects of the
// kind, or on a parent. A grant stands between: one for each role and target, with the subjects,
// so that a change of the role touches the tuples of the role alone.
//
// All of it is a pure function of the declared objects, and objects in deletion count as gone.
package iam
