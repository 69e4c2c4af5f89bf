// Package input reads the files that commands take as arguments.
package input

import (
	"io"
	"os"
)

// ReadFileOrStdin reads a file, up to a limit of bytes. The name - stands for in.
func ReadFileOrStdin(in io.Reader, name string, most int64) ([]byte, error) {
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
