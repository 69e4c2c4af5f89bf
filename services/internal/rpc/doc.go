// Package rpc is the server of every query API: Connect, gRPC and gRPC-Web on one
// port, over HTTP/1.1 and HTTP/2, with or without TLS, beside the probes and metrics.
//
// It decides in one place what all APIs share. A service hands over a [Handler] per
// Connect service and writes plain methods:
//
//   - They return errors as they come. One interceptor maps them to codes: the cause goes
//     to the log, the caller reads a fixed text. What a caller should read is made with
//     [NotFound], [Invalid] or [Incomplete].
//   - Requests arrive validated, from an authenticated caller, who may do what the
//     procedure's [Access] asks of Kubernetes.
//   - Time, size of bodies and headers, and memory of reviews are bounded.
//   - Lists go through [Page].
package rpc
