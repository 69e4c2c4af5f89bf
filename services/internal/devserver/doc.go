// Package devserver starts the real servers that Entail works with, on one machine and loopback only. These are the
// Kubernetes API server (bin/kube-local), NATS (bin/nats-server) and OpenFGA (bin/openfga). Each is a child process
// that ends with this process. Package embedded runs the last two in this process instead.
//
// A server keeps its state in a given directory, and keeps its port over a restart if the port is given. Stop returns
// after the process has ended.
package devserver
