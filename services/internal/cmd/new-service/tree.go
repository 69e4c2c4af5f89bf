package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// tree is the root of a checkout.
type tree string

// file is what a file of a tree is to hold. Its path is relative.
type file struct {
	path string
	data []byte
}

func (t tree) read(path string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(t), path))
}

// write is the only thing that changes a tree.
func (t tree) write(files []file) error {
	for _, f := range files {
		path := filepath.Join(string(t), f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making the directory of %s: %w", f.path, err)
		}
		if err := os.WriteFile(path, f.data, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", f.path, err)
		}
	}
	return nil
}
