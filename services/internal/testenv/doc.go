// Package testenv gives tests real servers: NATS, OpenFGA, OpenSearch and a Kubernetes API server. Each is a handle
// that can stop and restart its server, counts the writes through it, and injects failures at the client's side. A test
// package that uses [StartKube] calls [Main] from its TestMain.
package testenv
