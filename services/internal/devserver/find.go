package devserver

import (
	"fmt"
	"os"
	"path/filepath"
)

// KubeLocalEnv names the binary where it is not in its usual place.
const KubeLocalEnv = "ENTAIL_KUBE_LOCAL"

// FindKubeLocal finds bin/kube-local: what the environment names, else that of the
// checkout around the working directory, else the one beside this program.
func FindKubeLocal() (string, error) {
	candidates := make([]string, 0, 2)
	if path := os.Getenv(KubeLocalEnv); path != "" {
		candidates = append(candidates, path)
	} else {
		if root, err := Checkout(); err == nil {
			candidates = append(candidates, filepath.Join(root, "bin", "kube-local"))
		}
		if program, err := os.Executable(); err == nil {
			candidates = append(candidates, filepath.Join(filepath.Dir(program), "kube-local"))
		}
	}
	for _, path := range candidates {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("kube-local is not at any of %q: run `make kube-local`, or set %s", candidates, KubeLocalEnv)
}

// Checkout is the root of the checkout around the working directory: where go.work is.
func Checkout() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the checkout: no go.work in %s or above", start)
		}
	}
}
