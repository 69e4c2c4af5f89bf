// Package e2e tests the whole system from outside. It starts bin/entail as a process, and uses only the interfaces of
// users: the command line, the Kubernetes API and the query APIs. The tests need the build tag e2e; `make e2e` runs
// them.
package e2e
