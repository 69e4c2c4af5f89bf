//go:build !unix

package opensearch

import "os/exec"

// dropPrivileges does nothing on this system.
func dropPrivileges(*exec.Cmd, Config) error { return nil }

// AllowServerUserThrough does nothing on this system.
func AllowServerUserThrough(string) error { return nil }
