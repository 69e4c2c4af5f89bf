// Package opensearch starts a real OpenSearch with its security plugin, on one machine and loopback only, as a child
// that ends with this process. `make opensearch` installs it.
//
// An installation is read-only and shared. A [Server] keeps its own state in a directory, certificates included, and
// restarts with the same data, certificates and password. OpenSearch refuses to run as root. If this process runs as
// root, OpenSearch runs as a user without rights.
package opensearch
