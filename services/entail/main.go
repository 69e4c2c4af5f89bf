// Command entail runs the whole system on one machine, and tells where a change is now.
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
	// The first signal ends the work in order; the second one ends the process.
	context.AfterFunc(ctx, stop)
	os.Exit(command.Run(ctx, os.Args[1:], command.Surroundings{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
	}))
}
