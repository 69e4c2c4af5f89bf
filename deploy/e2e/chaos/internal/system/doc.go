// Package system runs Entail as an operator would: NATS, OpenFGA, an API server and replicas of
// every service, each a process of its own that can be killed and frozen, with a TCP proxy on
// every path between them. It knows binaries, flags and ports, and nothing of what is in them.
package system
