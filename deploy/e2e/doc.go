// Package e2e tests the whole system from outside: it starts bin/entail as a process
// and knows no more than a user does, which is the command line, the Kubernetes API
// and the query APIs. The tests need the build tag e2e; `make e2e` runs them.
package e2e
