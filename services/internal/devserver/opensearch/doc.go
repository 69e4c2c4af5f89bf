// Package opensearch starts a real OpenSearch with its security plugin as a child process, on loopback only. The
// server ends with this process. `make opensearch` installs it.
//
// An installation is read-only and shared. A [Server] keeps all its state in a directory, and restarts with the same
// data, certificates and password. OpenSearch refuses to run as root, so a root process runs it as a user without
// rights.
package opensearch
