//go:build !unix

package opensearch

import "os/exec"

// dropPrivileges does nothing on this system.
func dropPrivileges(*exec.Cmd, Config) error { return nil }

// Admit does nothing on this system.
func Admit(string) error { return nil }
