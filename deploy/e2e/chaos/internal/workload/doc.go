// Package workload draws what people do: it creates, changes and deletes objects of every kind at
// random. What it draws depends on the seed and on what it drew before, never on how the system
// answers, so that the same seed is the same operations. Each kind is a file.
package workload
