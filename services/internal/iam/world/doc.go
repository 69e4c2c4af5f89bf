// Package world generates random sets of declared IAM objects for tests, including unusual ones. It changes the
// objects, generates requests, and decides the requests with a simple reference implementation.
package world
