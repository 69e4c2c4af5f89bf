// Package service is the frame of every service: settings from flags and environment, logs, metrics, traces, NATS, the
// API server's address, probes, query APIs, and an orderly shutdown.
//
// A service exports a Config that embeds [Config], and a Run that calls [Run] with a function that builds its [App] on
// a [Runtime]. Nothing here is global, so several services can run in one process. [Main] holds the parts of the
// process: signals, flags, exit code.
package service
