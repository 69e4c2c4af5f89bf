// Package report writes the answers of the query APIs: tables and timelines for people, JSON and YAML for programs. Its
// output depends only on its arguments, which include the present time.
package report
