// Package input reads what a command is given by the name of a file.
package input

import (
	"io"
	"os"
)

// Read reads a file, or in for -, but no more than most bytes.
func Read(in io.Reader, name string, most int64) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	return io.ReadAll(io.LimitReader(in, most))
}
