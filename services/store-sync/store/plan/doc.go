// Package plan decides the actions of store-sync for one Store. It does no I/O and reads no clock.
//
// In a pass over a Store, [NextAction] compares the desired state in Kubernetes ([Input]) with the state of OpenFGA
// ([Observed]) and returns one [Action]. The caller carries it out, adds the answer to the observed state and calls
// Next again, until the action is [WriteStatus]. Then [StoreStatusWithOutcome] with [DesiredStoreStatus], and [DesiredModuleStatus], return the
// desired statuses and the outcomes to report.
//
// No state outside Kubernetes and OpenFGA survives a pass, so an interrupted pass simply starts again.
package plan
