package datadir

import (
	"fmt"
	"os"
)

// maxLogSize is where a start moves the old log aside; one old log is kept.
const maxLogSize = 32 << 20

// OpenLog opens a log for appending.
func OpenLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogSize {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, fmt.Errorf("moving the old log aside: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log file: %w", err)
	}
	return file, nil
}
