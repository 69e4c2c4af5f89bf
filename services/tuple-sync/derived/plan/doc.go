// Package plan decides the conditions of IAM's declared objects. It does no I/O.
package plan
