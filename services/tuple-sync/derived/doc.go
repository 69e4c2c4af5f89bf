// Package derived keeps the tuples of IAM's types in the IAM store in step with the declared objects. The wanted tuples
// follow from Roles, PolicyBindings, Groups, GroupMemberships, Users and the objects that these name.
//
// Entail owns these types alone. Therefore no record is needed, and a tuple that follows from no declared object is a
// back door: this package removes it. It changes nothing in a store that this cluster has not adopted.
//
// The package compares with a copy of the store. It reads the whole store once. Afterwards it applies its own writes to the
// copy, and follows OpenFGA's list of changes to find writes of others.
package derived
