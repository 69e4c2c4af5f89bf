//go:build unix

package devserver

import (
	"os/exec"
	"syscall"
)

// detach keeps a terminal's Ctrl-C from a child. This process ends its children itself, in the right order.
func detach(child *exec.Cmd) {
	if child.SysProcAttr == nil {
		child.SysProcAttr = &syscall.SysProcAttr{}
	}
	child.SysProcAttr.Setpgid = true
}
