//go:build unix

package devserver

import (
	"os/exec"
	"syscall"
)

// detach keeps a terminal's Ctrl-C from a child: this process ends it, in due order.
func detach(child *exec.Cmd) {
	if child.SysProcAttr == nil {
		child.SysProcAttr = &syscall.SysProcAttr{}
	}
	child.SysProcAttr.Setpgid = true
}
