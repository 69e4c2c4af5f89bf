// Package plan decides the status of a ProtectedResource, and the spec of the IAM store when it is created. It does no
// I/O and reads no clock.
package plan
