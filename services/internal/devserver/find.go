package devserver

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	// BinEnv is the environment variable for the directory of the server programs.
	BinEnv = "ENTAIL_BIN"
	// KubeLocalEnv is the environment variable for the path of kube-local.
	KubeLocalEnv = "ENTAIL_KUBE_LOCAL"
)

// FindKubeLocal returns the path of kube-local: the value of [KubeLocalEnv], or the first of its [ProgramPaths] that
// exists.
func FindKubeLocal() (string, error) {
	const advice = "run `make kube-local`, or set " + KubeLocalEnv
	if path := os.Getenv(KubeLocalEnv); path != "" {
		return firstExistingFile("kube-local", []string{path}, advice)
	}
	return firstExistingFile("kube-local", ProgramPaths("kube-local"), advice)
}

// FindProgram returns the path of a server program: the first of its [ProgramPaths] that exists.
func FindProgram(program string) (string, error) {
	return firstExistingFile(program, ProgramPaths(program), "run `make bin/"+program+"`, or set "+BinEnv)
}

// ProgramPaths returns the possible paths of a program. The directories are that of [BinEnv], bin in the checkout that
// contains the working directory, and the directory of this program.
func ProgramPaths(program string) []string {
	places := make([]string, 0, 3)
	if dir := os.Getenv(BinEnv); dir != "" {
		places = append(places, filepath.Join(dir, program))
	}
	if root, err := CheckoutRoot(); err == nil {
		places = append(places, filepath.Join(root, "bin", program))
	}
	if self, err := os.Executable(); err == nil {
		places = append(places, filepath.Join(filepath.Dir(self), program))
	}
	return places
}

// firstExistingFile returns the first path that is a regular file. Its error ends with the advice.
func firstExistingFile(program string, places []string, advice string) (string, error) {
	for _, path := range places {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not at any of %q: %s", program, places, advice)
}

// CheckoutRoot returns the root of the checkout that contains the working directory: the directory with go.work.
func CheckoutRoot() (string, error) {
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
