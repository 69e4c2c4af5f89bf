// Package mirror keeps the tuples of IAM's types in the IAM store. They are Entail's alone, so that nothing has
// to be recorded of them: what an object of OpenFGA is to hold follows from Roles, PolicyBindings, Groups,
// GroupMemberships, Users and what these refer to, and is compared with a copy of what OpenFGA holds. What is
// there and follows from nothing is somebody's back door, and goes.
//
// The copy is read once. From then on it follows our own writes, and OpenFGA's list of changes for those of
// others.
package mirror
