// Package admission serves validating webhooks, with which a service judges each write before it happens. A request
// that cannot be judged is refused, unless the webhook's failure policy lets it pass.
//
// The server requires only the API server, neither NATS nor OpenFGA. It creates and renews its certificate. The signing
// key is discarded at once, and replicas share the certificate in a Secret. The server registers the webhooks in a
// ValidatingWebhookConfiguration and reverts changes by others.
//
// Only the API server can call the webhooks, because their path is secret and changes every few minutes. Requests in
// one namespace, or of one user for cluster-scoped objects, cannot block those of another. The configuration also
// records the time since which no request has passed without judgement.
package admission
