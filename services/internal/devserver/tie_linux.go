package devserver

import (
	"os/exec"
	"syscall"
)

// tieChild detaches a child and makes the kernel kill it when this process ends.
func tieChild(child *exec.Cmd) {
	detachChild(child)
	child.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// guardChild does nothing on Linux, where [tieChild] is enough.
func guardChild(int) (release func(), err error) { return func() {}, nil }
