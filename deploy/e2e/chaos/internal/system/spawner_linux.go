package system

import (
	"os/exec"
	"syscall"
)

// setEnd makes the kernel kill a child whose parent is gone, however that went.
func setEnd(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
