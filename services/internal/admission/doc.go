// Package admission serves validating webhooks, with which a service checks each write before it is stored. A request
// that cannot be checked is refused, unless the webhook's failure policy allows it.
//
// The server needs only the API server, not NATS or OpenFGA. It creates and renews its certificate, which replicas
// share in a Secret. It registers the webhooks in a ValidatingWebhookConfiguration and reverts changes by others. The
// configuration also records since when every request was checked.
//
// Only the API server can call the webhooks, because their path is secret and changes every few minutes. Requests in
// one namespace, or of one user for cluster-scoped objects, cannot block the requests of others.
package admission
