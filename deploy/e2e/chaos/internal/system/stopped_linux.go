package system

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// isStopped reports whether every thread of a process is stopped or has ended.
func isStopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // The pattern is valid.
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			continue // The thread has ended.
		}
		// The state follows the name, which is in parentheses and may contain parentheses.
		state := stat[bytes.LastIndexByte(stat, ')')+2]
		if !strings.ContainsRune("TtZX", rune(state)) {
			return false
		}
	}
	return true
}
