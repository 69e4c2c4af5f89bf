// Package rpc is the server of every query API. It serves Connect, gRPC and gRPC-Web on one port, over HTTP/1.1 and
// HTTP/2, with or without TLS, together with probes and metrics.
//
// A service provides a [Handler] per Connect service and implements plain methods under these rules:
//   - Methods may return any error. An interceptor logs the cause and returns a fixed text to the caller. To return a
//     text to the caller, use [NotFoundError], [InvalidError] or [IncompleteError].
//   - Requests arrive validated, from an authenticated caller with the right that the procedure's [AccessRule]
//     requires.
//   - The time of a call, the size of bodies and headers, and the memory of reviews are bounded.
//   - Lists use [Paginate].
package rpc
