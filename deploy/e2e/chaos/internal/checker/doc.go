// Package checker says what must be true of a system at rest, by its own naive reading of the
// objects, and watches all the time that what was revoked stays revoked. It shares no code with
// the services: models are merged by OpenFGA's own library, roles followed by depth-first search.
package checker
