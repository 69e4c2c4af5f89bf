// Package allinone runs the whole system in one process on loopback, for development
// and a first look: real NATS, real OpenFGA, a real Kubernetes API server beside it,
// and every service. All state is in one directory and survives a restart.
//
// It starts from the ground up (servers, then kinds, then services) and stops in the
// opposite order, so that each part can finish its work on those below it.
package allinone
