// Package devserver starts the real servers that Entail works with, on one machine and on loopback only. These are the
// Kubernetes API server (bin/kube-local), NATS (bin/nats-server) and OpenFGA (bin/openfga). Each is a child process
// that ends with this process.
//
// A server keeps its state in a given directory. It keeps its port over a restart if the port is given. Stop returns
// after the process has ended. Package embedded runs NATS and OpenFGA inside of this process instead.
package devserver
