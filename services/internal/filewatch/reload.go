// Package filewatch reads files again when they change, because secrets and certificates are replaced while a process
// runs. It does not watch: it compares size and time at each use.
package filewatch

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Files holds the value of files that belong together, such as a certificate and its key. While their content is
// invalid, for example in the middle of a change, the previous value stays in use.
type Files[T any] struct {
	paths []string
	parse func(contents ...[]byte) (T, error)
	log   *slog.Logger

	mu    sync.Mutex
	stamp []fileStamp
	value T
}

// fileStamp identifies the content of a file without reading it.
type fileStamp struct {
	modified time.Time
	size     int64
}

// Open reads files and parses their contents.
func Open[T any](log *slog.Logger, parse func(contents ...[]byte) (T, error), paths ...string) (*Files[T], error) {
	f := &Files[T]{paths: paths, parse: parse, log: log, stamp: fileStamps(paths)}
	return f, f.readFiles()
}

// Get returns the value of the present contents. It costs one stat call for each file.
func (f *Files[T]) Get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Taken before the read, so that a change in between is found at the next call.
	if now := fileStamps(f.paths); !slices.Equal(now, f.stamp) {
		f.stamp = now
		if err := f.readFiles(); err != nil {
			f.log.Warn("files changed but cannot be used; their previous content stays in use", "error", err)
		}
	}
	return f.value
}

func (f *Files[T]) readFiles() error {
	contents := make([][]byte, len(f.paths))
	for i, path := range f.paths {
		var err error
		if contents[i], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	value, err := f.parse(contents...)
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(f.paths, ", "), err)
	}
	f.value = value
	return nil
}

func fileStamps(paths []string) []fileStamp {
	all := make([]fileStamp, len(paths))
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil {
			all[i] = fileStamp{info.ModTime(), info.Size()}
		}
	}
	return all
}
