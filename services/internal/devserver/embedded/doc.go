// Package embedded runs NATS and OpenFGA inside of this process. It serves `entail up` and tests that inspect a
// server. Other tests use the child processes of package devserver, because a program that imports this package links
// both servers and SQLite.
package embedded
