// Command entail runs the whole system on one machine, queries its APIs, and works on policies.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/entail-dev/entail/services/entail/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal stops the work in order. The second one ends the process.
	context.AfterFunc(ctx, stop)
	os.Exit(command.Run(ctx, os.Args[1:], command.IOStreams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
	}))
}
