// Package topology is the one table of everything on NATS: streams, subjects, kinds, and the durable consumer of each
// service. It also encodes and decodes subjects, and restores streams that differ from the table.
package topology
