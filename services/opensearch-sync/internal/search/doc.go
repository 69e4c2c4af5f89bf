// Package search talks to the security API of one OpenSearch cluster, over TLS alone, to the one address that was asked for.
package search
