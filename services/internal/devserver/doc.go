// Package devserver starts the real servers that Entail works with, for one machine
// and loopback only: the Kubernetes API server (bin/kube-local), NATS
// (bin/nats-server) and OpenFGA (bin/openfga), each as a child process that ends
// with this process. Package embedded runs the last two in this process instead.
//
// Every server keeps its state in the place it is given and its port over a
// restart when it is given one. Stop returns when nothing of the server is left.
package devserver
