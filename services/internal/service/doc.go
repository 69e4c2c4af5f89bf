// Package service provides the common parts of every service: settings from flags and environment, logs, metrics,
// traces, NATS, the configuration of the API server's client, probes, query APIs, and an orderly shutdown.
//
// A service exports a Config that embeds [Config], and a Run that calls [Run] with a function that builds its [App]
// from a [Runtime]. Several services can run in one process, because only [Main] and [CaptureLibraryLogs] change
// global state. [Main] handles signals, flags and the exit code.
package service
