// Package devserver starts the real servers that Entail works with, for one
// machine and loopback only: NATS and OpenFGA in this process, the Kubernetes API
// server (bin/kube-local) as a child that dies with it. Development and tests stand
// on the same ground as production; nothing here is a fake.
//
// Every server keeps its state in the place it is given and its port over a
// restart when it is given one. Stop returns when nothing of the server is left.
package devserver
