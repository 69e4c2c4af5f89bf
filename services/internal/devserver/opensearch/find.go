package opensearch

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/entail-dev/entail/services/internal/devserver"
)

// InstallationEnv is the environment variable for the path of the installation.
const InstallationEnv = "ENTAIL_OPENSEARCH"

// FindInstallation returns the path of the installation: the value of [InstallationEnv], or the first of
// [devserver.ProgramPaths] with an installation.
func FindInstallation() (string, error) {
	candidates := devserver.ProgramPaths("opensearch")
	if path := os.Getenv(InstallationEnv); path != "" {
		candidates = []string{path}
	}
	for _, path := range candidates {
		// The class data archive is valid only for the real path.
		if home, err := filepath.EvalSymlinks(path); err == nil && isInstalled(home) {
			return filepath.Abs(home)
		}
	}
	return "", fmt.Errorf("OpenSearch is not at any of %q: run `make opensearch`, or set %s", candidates, InstallationEnv)
}

func isInstalled(home string) bool {
	info, err := os.Stat(filepath.Join(home, "plugins", plugin, "plugin-descriptor.properties"))
	return err == nil && info.Mode().IsRegular()
}

// javaProgram returns the program that runs OpenSearch.
func javaProgram() string {
	for _, env := range []string{"OPENSEARCH_JAVA_HOME", "JAVA_HOME"} {
		if home := os.Getenv(env); home != "" {
			return filepath.Join(home, "bin", "java")
		}
	}
	return "java"
}
