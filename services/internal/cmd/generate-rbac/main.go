// Command generate-rbac writes the manifest of every service's account below a directory.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/entail-dev/entail/services/internal/rbac"
)

func main() {
	for _, account := range rbac.Accounts() {
		if err := write(os.Args[1], account); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func write(base string, account rbac.Account) error {
	data, err := account.Manifest()
	if err != nil {
		return err
	}
	dir := filepath.Join(base, account.Service)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "rbac.yaml"), data, 0o644)
}
