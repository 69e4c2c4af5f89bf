// Package embedded runs NATS and OpenFGA in this process, for `entail up` and for
// tests that look inside a server. Other tests use the child processes of package
// devserver: a program that imports this package links both servers and SQLite.
package embedded
