//go:build !unix

package devserver

import "os/exec"

// detach has no counterpart here.
func detach(*exec.Cmd) {}
