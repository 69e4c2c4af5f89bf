// Package plan decides what the status of a ProtectedResource says, and what the IAM store is like
// when it is made. It does no I/O and reads no clock.
package plan
