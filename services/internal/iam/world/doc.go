// Package world generates random sets of declared IAM objects for tests, including unusual ones. It changes them,
// generates requests, and answers these with a naive reference implementation.
package world
