// Package service provides the common parts of every service. These are settings from flags and environment, logs,
// metrics, traces, the connections to NATS and the API server, probes, query APIs, and the shutdown.
//
// A service exports a Config that embeds [Config], and a Run that calls [Run] with a function that builds its [App]
// from a [Runtime]. Several services can run in one process, because only [Main] and [CaptureLibraryLogs] change
// global state. [Main] handles signals, flags and the exit code.
package service
