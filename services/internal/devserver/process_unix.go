//go:build unix

package devserver

import (
	"os/exec"
	"syscall"
)

// detachChild keeps a terminal's Ctrl-C from a child. This process ends its children itself, in the right order.
func detachChild(child *exec.Cmd) {
	if child.SysProcAttr == nil {
		child.SysProcAttr = &syscall.SysProcAttr{}
	}
	child.SysProcAttr.Setpgid = true
}
