// Package search is a client for the security API of one OpenSearch cluster. It uses TLS only, calls only the
// configured address, and bounds every answer that it reads.
package search
