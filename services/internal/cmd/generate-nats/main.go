// Command generate-nats writes the NATS configuration with the rights of all services to a file.
package main

import (
	"fmt"
	"os"

	"github.com/entail-dev/entail/services/internal/natsauth"
)

func main() {
	config, err := natsauth.ServerConfig()
	if err == nil {
		err = os.WriteFile(os.Args[1], config, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
