// Package testbed gives tests real servers: NATS, OpenFGA, and a Kubernetes API
// server, each as a handle that can be stopped and started again, that counts what
// is written through it, and that can be made to fail on purpose at the client's
// side of the wire. A test package that uses [Kube] calls [Main] from its TestMain.
package testbed
