// Package opensearch starts a real OpenSearch with its security plugin, for one machine and
// loopback only, as a child that dies with this process. `make opensearch` installs it.
//
// An installation is read-only and shared; a [Server] keeps all that is its own, certificates
// included, in a directory, and comes back with the same data, certificates and password.
// OpenSearch refuses to run as root: then it runs as a user without rights.
package opensearch
