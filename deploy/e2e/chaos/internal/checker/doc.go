// Package checker checks a system at rest by its own simple reading of the objects. It also monitors at all times that
// revoked access stays revoked. It shares no code with the services: OpenFGA's own library merges models, and a
// depth-first search follows roles.
package checker
