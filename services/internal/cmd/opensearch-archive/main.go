// Command opensearch-archive creates the class data archive of the OpenSearch in the directory that its argument
// names. It starts the server once. Each later start takes a third of the time.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/entail-dev/entail/services/internal/devserver/opensearch"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := createClassArchive(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "opensearch-archive:", err)
		os.Exit(1)
	}
}

func createClassArchive(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("give the directory of the installation")
	}
	dir, err := os.MkdirTemp("", "entail-opensearch-")
	if err != nil {
		return err
	}
	return errors.Join(opensearch.MakeClassArchive(ctx, args[0], dir), os.RemoveAll(dir))
}
