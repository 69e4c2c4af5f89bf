//go:build !linux

package system

import (
	"os/exec"
	"syscall"
)

// setEnd keeps a terminal's Ctrl-C from a child. Nothing here ends it with a parent that is killed.
func setEnd(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
