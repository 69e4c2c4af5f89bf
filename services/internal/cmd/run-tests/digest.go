package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// digestFiles returns a hash of the files in the checkout, except Go sources and built programs.
//
// Go's test cache ignores changes of files outside of the module of a test, such as deploy/ or docs/. So the hash
// becomes part of the cache key of tests that read such files. It includes the stamp of kube-local, which identifies
// the sources of that program.
func digestFiles(root string) (string, error) {
	ignored := []string{".git", ".tmp", ".entail", "gen"}
	hash := sha256.New()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(ignored, relative) {
				return fs.SkipDir
			}
			return nil
		}
		inBin := strings.HasPrefix(relative, "bin"+string(filepath.Separator))
		if !d.Type().IsRegular() || strings.HasSuffix(path, ".go") || inBin && !strings.HasSuffix(path, ".stamp") {
			return nil
		}
		return hashFile(hash, path, relative)
	})
	return hex.EncodeToString(hash.Sum(nil)[:8]), err
}

func hashFile(hash io.Writer, path, name string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	fmt.Fprintln(hash, name)
	_, err = io.Copy(hash, file)
	return err
}
