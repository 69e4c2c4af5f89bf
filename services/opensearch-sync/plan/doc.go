// Package plan decides, without I/O, what is to be done so that OpenSearch has what objects ask for: from all objects of one
// kind in a cluster, and what the server lists of it. Nothing that others made is changed.
package plan
