// Package model merges the modules of a store into the one authorization model that OpenFGA keeps for it.
//
// A store's model has many authors: the core module of the Store, AuthorizationModels, modules compiled from policies,
// and modules generated from discovered APIs. OpenFGA accepts or refuses the merge as a whole, so one bad module would
// freeze the model for all authors. [Merge] therefore finds the largest part that OpenFGA accepts, by three rules:
//
//   - a module lives only if modules that live define everything it refers to;
//   - if two modules define the same name, the one with the weaker claim gives way, as long as the other one lives: see
//     package precedence;
//   - the living part passes the same validation that the OpenFGA server does on a write.
//
// Every module gets a [ModuleReport]. For a rejected module it contains the error, the place and the remedy. The result is a
// function of the modules alone: their order does not matter, and a rejected module has no influence on the others.
//
// Modules come from outside, and a kilobyte of hostile DSL can keep OpenFGA's parser or its validation busy for hours.
// The package therefore estimates and bounds their cost before they run.
//
// The package is pure: no I/O, no clock, no log.
package model
