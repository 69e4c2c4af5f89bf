//go:build unix

package devserver

import (
	"os/exec"
	"syscall"
)

// detach keeps a terminal's Ctrl-C from a child: who started it ends it, in due order.
func detach(child *exec.Cmd) {
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
