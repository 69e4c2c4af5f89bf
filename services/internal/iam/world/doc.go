// Package world makes sets of declared objects of IAM for tests, as odd as they can be, changes
// them, asks questions about them, and answers these by what the objects say and nothing else.
package world
