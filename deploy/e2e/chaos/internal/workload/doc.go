// Package workload draws the operations of users: it creates, changes and deletes objects of every kind at random. Its
// draws depend only on the seed and on earlier draws, never on the answers of the system, so the same seed gives the
// same operations. Each kind has its own file.
package workload
