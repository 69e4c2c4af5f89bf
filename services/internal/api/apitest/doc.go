// Package apitest tests the CRDs and admission policies in deploy on a real API server. The tests check which objects
// the server accepts and refuses, and how it shows them. It covers all API groups.
package apitest
