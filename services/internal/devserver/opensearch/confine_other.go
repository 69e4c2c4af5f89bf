//go:build !unix

package opensearch

import "os/exec"

// dropPrivileges does nothing on this system.
func dropPrivileges(*exec.Cmd, Config) error { return nil }

// AllowServerUserToTraverse does nothing on this system.
func AllowServerUserToTraverse(string) error { return nil }
