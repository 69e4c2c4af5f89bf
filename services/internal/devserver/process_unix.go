//go:build unix

package devserver

import (
	"os/exec"
	"syscall"
)

// detachChild makes a Ctrl-C in the terminal not reach the child. This process stops its children itself, in the right
// order.
func detachChild(child *exec.Cmd) {
	if child.SysProcAttr == nil {
		child.SysProcAttr = &syscall.SysProcAttr{}
	}
	child.SysProcAttr.Setpgid = true
}
