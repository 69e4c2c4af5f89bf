//go:build !unix

package opensearch

import "os/exec"

// confine does nothing on this system.
func confine(*exec.Cmd, Config) error { return nil }

// Admit does nothing on this system.
func Admit(string) error { return nil }
