// Package embedded runs NATS and OpenFGA in this process, for `entail up` and for tests that inspect a server. Other
// tests use the child processes of package devserver, because a program that imports this package links both servers
// and SQLite.
package embedded
