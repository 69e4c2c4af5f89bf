//go:build unix && !linux

package opensearch

import "syscall"

// tie has no counterpart here: the child of a process that was killed stays.
func tie(*syscall.SysProcAttr) {}
