// Package service is what every service starts with: settings from flags and
// environment, logs, metrics, traces, the bus, the API server's address, probes, query
// APIs, and a shutdown in order.
//
// A service exports a Config that embeds [Config], and a Run that calls [Run] with a
// function that builds its [App] on a [Runtime]. Nothing here is global, so several
// services run in one process. What belongs to the process (signals, flags, exit code)
// is in [Main].
package service
