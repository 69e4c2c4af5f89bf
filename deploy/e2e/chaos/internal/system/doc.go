// Package system runs Entail as an operator would: NATS, OpenFGA, an API server and replicas of every service. Each is
// its own process, which can be killed and frozen, and a TCP proxy is on every path between them. The package uses
// binaries, flags and ports, and no internals of the programs.
package system
