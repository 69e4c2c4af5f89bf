// Package testenv provides real servers to tests: NATS, OpenFGA, OpenSearch and a Kubernetes API server. A test can
// stop and restart each server, count the writes that services send to it, and inject failures into their calls. A
// test package that uses [StartKube] calls [Main] from its TestMain.
package testenv
