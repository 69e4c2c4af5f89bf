package devserver

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// ChildProcess is a process that ends when this process ends, even if this process is killed.
type ChildProcess struct {
	process *exec.Cmd
	ended   chan struct{}
	endErr  error
}

// StartChild starts a command. The thread that starts the command also waits for its end, because Linux kills the
// child when this thread ends.
func StartChild(command *exec.Cmd) (*ChildProcess, error) {
	bindChildLifetime(command)
	c := &ChildProcess{process: command, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // No unlock: the thread ends with this function.
		defer close(c.ended)
		release, err := c.startProcess()
		started <- err
		if err == nil {
			c.endErr = command.Wait()
			release()
		}
	}()
	return c, <-started
}

// startProcess starts the child and a guard, which kills the child when this process ends.
func (c *ChildProcess) startProcess() (release func(), err error) {
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	release, err = startChildGuard(c.process.Process.Pid)
	if err != nil {
		_ = c.process.Process.Kill() // It fails only if the process has ended.
		_ = c.process.Wait()
	}
	return release, err
}

// Done returns a channel that is closed when the process has ended.
func (c *ChildProcess) Done() <-chan struct{} { return c.ended }

// Err returns the result of the process. Call it after [ChildProcess.Done] is closed.
func (c *ChildProcess) Err() error { return c.endErr }

// HasEnded reports whether the process has ended.
func (c *ChildProcess) HasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Stop sends SIGTERM and waits for the end. After the time within it kills the process and returns an error.
func (c *ChildProcess) Stop(within time.Duration) error {
	_ = c.process.Process.Signal(syscall.SIGTERM) // It fails only if the process has ended.
	select {
	case <-c.ended:
		return nil
	case <-time.After(within):
		c.Kill()
		return fmt.Errorf("%s did not stop within %s and was killed", c.process.Path, within)
	}
}

// Kill ends the process at once, as a crash would.
func (c *ChildProcess) Kill() {
	_ = c.process.Process.Signal(os.Kill) // It fails only if the process has ended.
	<-c.ended
}
