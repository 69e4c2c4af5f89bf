// Package plan decides what store-sync does about one Store. It does no I/O and reads no clock.
//
// A pass over a Store is a conversation: [Next] looks at what Kubernetes declares ([Input]) and
// at what OpenFGA has said so far in this pass ([Facts]) and names one [Action]; the caller
// carries it out, adds the answer to the facts and asks again, until the action is [Settle].
// Then [StoreStatus] and [ModuleStatus] say what the objects' status must be, and
// [StoreOutcome] and [ModuleOutcome] what to tell the bus.
//
// Nothing is remembered between passes but what is in Kubernetes and OpenFGA, so a pass that
// was cut off anywhere is simply begun again.
package plan
