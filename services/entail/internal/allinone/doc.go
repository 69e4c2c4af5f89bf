// Package allinone runs the whole system in one process on loopback, for development and a first look. It uses real
// NATS, real OpenFGA, a real Kubernetes API server beside it, and every service. All state is in one directory and
// survives a restart.
//
// It starts servers, then applies kinds, then starts services. It stops services before servers, so that each part can
// finish its work on the parts below it.
package allinone
