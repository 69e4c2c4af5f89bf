//go:build unix && !linux

package devserver

import (
	"fmt"
	"os/exec"
	"strconv"
)

// bindChildLifetime detaches a child. [startChildGuard] kills it when this process ends.
func bindChildLifetime(child *exec.Cmd) { detachChild(child) }

// startChildGuard starts a shell that kills a process when this process ends: the shell's input ends at that time. Call
// release after the guarded process has ended.
func startChildGuard(pid int) (release func(), err error) {
	shell := exec.Command("/bin/sh", "-c", "read -r line; kill -9 "+strconv.Itoa(pid))
	detachChild(shell)
	stdin, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("guarding process %d: %w", pid, err)
	}
	return func() {
		// At the end of its input, the shell would kill the process ID, which another process may have by now. So the
		// shell is killed first.
		_ = shell.Process.Kill()
		_ = stdin.Close()
		_ = shell.Wait()
	}, nil
}
