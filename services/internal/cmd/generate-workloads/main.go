// Command generate-workloads writes the workload manifests of the services below the directory of manifests.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/entail-dev/entail/services/internal/deployspec"
)

func main() {
	if err := writeWorkloads(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func writeWorkloads(dir string) error {
	files, err := deployspec.GenerateManifests()
	if err != nil {
		return err
	}
	for name, data := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
