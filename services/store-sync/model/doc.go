// Package model merges the modules of a store into the one authorization model that OpenFGA keeps for it.
//
// A store's model has many authors: the core module of the Store, the modules of AuthorizationModels, modules compiled
// from policies, modules generated from discovered APIs. OpenFGA accepts or refuses their merge as a whole, so one bad
// module would freeze the model of everybody. Merge therefore finds the largest part that OpenFGA accepts, by three rules:
//
//   - a module lives only if everything it refers to is defined by modules that live;
//   - of two modules that define the same thing the one with the weaker claim gives way, as long as the other one lives: see
//     package precedence;
//   - what lives passes the very validation that the OpenFGA server does on a write.
//
// Every module gets a Report; one that is left out says what is wrong, where, and what to do. The result is a function of
// the modules alone: their order does not matter, and taking a rejected module away changes nothing for the others.
//
// Modules come from outside, and both OpenFGA's parser and its validation can be kept busy for hours by a kilobyte of
// well-chosen DSL. Their cost is therefore estimated, and bounded, before they run.
//
// The package is pure: no I/O, no clock, no log.
package model
