// Package admission is the server by which a service judges what somebody is about to write: a
// validating webhook of the API server. Whatever cannot be judged is refused, but where a webhook says that
// it is to pass.
//
// The server needs the API server and nothing else, neither the bus nor OpenFGA. It makes its
// certificate itself and renews it in time: the authority that signs is made with it, and its key
// forgotten at once. Replicas share the certificate by a Secret. The webhooks are registered, with
// the authority, in a ValidatingWebhookConfiguration that the service keeps as it must be: what
// somebody else changes there is put back.
//
// Nobody but the API server is heard: it asks at a path that is registered, changes every few minutes,
// and is told nobody else. And whoever asks much in one namespace, or by one name of what is in none, keeps nobody else out. The
// configuration says, too, since when nothing has passed that was not judged.
package admission
