package opensearch

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/entail-dev/entail/services/internal/devserver"
)

// Env names the installation where it is not in its usual place.
const Env = "ENTAIL_OPENSEARCH"

// Find returns the installation: what [Env] names, else the first of [devserver.Places] that has it.
func Find() (string, error) {
	candidates := devserver.Places("opensearch")
	if path := os.Getenv(Env); path != "" {
		candidates = []string{path}
	}
	for _, path := range candidates {
		// The archive of classes goes with the real path.
		if home, err := filepath.EvalSymlinks(path); err == nil && installed(home) {
			return filepath.Abs(home)
		}
	}
	return "", fmt.Errorf("OpenSearch is not at any of %q: run `make opensearch`, or set %s", candidates, Env)
}

func installed(home string) bool {
	info, err := os.Stat(filepath.Join(home, "plugins", plugin, "plugin-descriptor.properties"))
	return err == nil && info.Mode().IsRegular()
}

// java is the program that OpenSearch runs in.
func java() string {
	for _, env := range []string{"OPENSEARCH_JAVA_HOME", "JAVA_HOME"} {
		if home := os.Getenv(env); home != "" {
			return filepath.Join(home, "bin", "java")
		}
	}
	return "java"
}
