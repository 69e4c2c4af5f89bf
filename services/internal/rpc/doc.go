// Package rpc is the server of every query API. It serves Connect, gRPC and gRPC-Web on one port, over HTTP/1.1 and
// HTTP/2, with or without TLS, beside probes and metrics. It holds the rules that all APIs share.
//
// A service provides a [Handler] per Connect service and writes plain methods:
//
//   - They return any error. One interceptor maps it to a code: the cause goes to the log, the caller reads a fixed text.
//     Errors for the caller are made with [NotFoundError], [InvalidError] or [IncompleteError].
//   - Requests arrive validated, from an authenticated caller with the right that the procedure's [AccessRule] requires.
//   - Time, size of bodies and headers, and memory of reviews are bounded.
//   - Lists use [Paginate].
package rpc
