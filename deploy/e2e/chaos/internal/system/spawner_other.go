//go:build !linux

package system

import (
	"os/exec"
	"syscall"
)

// setEnd keeps Ctrl-C in the terminal from a child. On this platform, a child survives a parent that is killed.
func setEnd(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
