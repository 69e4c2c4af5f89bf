// Package apitest tests what an API server makes of the CRDs and admission policies in deploy: which objects it
// accepts, refuses and shows, for all API groups on one server.
package apitest
