// Package report writes the answers of the query APIs: tables and timelines for
// people, JSON and YAML for programs. What it writes depends on nothing but its
// arguments; the present time is one of them.
package report
