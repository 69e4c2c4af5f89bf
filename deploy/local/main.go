// Command kube-local is a Kubernetes API server for one machine: etcd, the
// API server and the controllers that the project relies on, in one process
// that listens on loopback only.
//
// It prints one line of JSON on standard output as soon as the server is
// ready, and keeps running until SIGINT or SIGTERM (or, when asked, until its
// standard input ends). All state lives in one data directory.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/deploy/local/internal/options"
)

func main() {
	opts, err := options.Parse(os.Args[1:], os.Stderr)
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err == nil {
		err = runUntilStopped(opts)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "kube-local: %v\n", err)
		os.Exit(1)
	}
}

// runUntilStopped runs the cluster until a signal or the end of standard
// input. A second signal kills the process at once.
func runUntilStopped(opts options.Options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	if opts.ExitWithStdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	err := runInDataDir(ctx, opts, os.Stdout)
	if ctx.Err() != nil {
		return nil // asked to stop, at whatever point that was
	}
	return err
}
