// Package topology is the one table of what is on the bus: streams, subjects,
// kinds, and the durable consumer of every service. Everything else asks here.
package topology
