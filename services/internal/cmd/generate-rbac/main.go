// Command generate-rbac writes the RBAC manifests below a directory. There is one for each service account, one with
// the roles for users, and one with the rights on Secrets.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/entail-dev/entail/services/internal/rbac"
)

func main() {
	err := errors.Join(
		writeManifest(filepath.Join(os.Args[1], "base", "roles.yaml"), rbac.PeopleRolesManifest),
		writeManifest(filepath.Join(os.Args[1], "components", "secrets", "rbac.yaml"), rbac.SecretBindingsManifest),
	)
	for _, account := range rbac.Accounts() {
		err = errors.Join(err, writeManifest(filepath.Join(os.Args[1], "base", account.Service, "rbac.yaml"), account.Manifest))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func writeManifest(file string, manifest func() ([]byte, error)) error {
	data, err := manifest()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}
