// Package plan decides what the statuses of what is declared say. It does no I/O.
package plan
