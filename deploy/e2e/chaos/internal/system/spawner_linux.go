package system

import (
	"os/exec"
	"syscall"
)

// setEnd makes the kernel kill a child when its parent ends for any reason.
func setEnd(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
