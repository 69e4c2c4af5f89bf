// Package topology defines everything that exists on NATS in one place: the streams, the subjects, and the durable
// consumer of each service with its kinds. It also encodes and decodes subjects.
//
// Only the watcher changes streams; it restores a stream that differs from its definition. Every subject that holds a
// state keeps only the newest message.
package topology
