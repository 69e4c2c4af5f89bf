// Package plan decides what store-sync does about one Store. It does no I/O and reads no clock.
//
// In a pass over a Store, [Next] compares what Kubernetes declares ([Input]) with what is known of
// OpenFGA ([Observed]) and names one [Action]; the caller carries it out, adds the answer to what
// is observed and asks again, until the action is [WriteStatus]. Then [StoreStatus] and
// [ModuleStatus] are what the objects' status must be, and [StoreOutcome] and [ModuleOutcome]
// what to report of them.
//
// Nothing is remembered between passes but what is in Kubernetes and OpenFGA, so a pass that
// was cut off anywhere is simply begun again.
package plan
