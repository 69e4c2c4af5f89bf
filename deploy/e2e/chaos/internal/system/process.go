package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// killedAfter bounds how long a process may take to end when it is asked to.
const killedAfter = 30 * time.Second

// dumpedAfter bounds how long a process may take to write down what it does.
const dumpedAfter = 5 * time.Second

// frozenAfter bounds how long Freeze waits: another blow may thaw the process meanwhile.
const frozenAfter = 10 * time.Second

// Process is a program that can be started, killed and frozen any number of times. Its log goes on
// over all its lives.
type Process struct {
	// Name is unique in the system, such as tuple-sync-1.
	Name string

	path    string
	args    []string
	env     []string
	log     string
	spawner *spawner
	// failed hears of a process that ended though nobody asked for it.
	failed func(error)

	mu      sync.Mutex
	running *life
}

// life is one run of a process.
type life struct {
	cmd   *exec.Cmd
	log   *os.File
	ended chan struct{}
	err   error
	// killed says that it was given no time to end.
	killed atomic.Bool
	// meant says that its end was asked for.
	meant bool
}

// Start starts the process unless it runs.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(p.log), 0o700); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	_, _ = fmt.Fprintf(log, "--- started %s\n", time.Now().Format(time.RFC3339Nano))
	cmd := exec.Command(p.path, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := p.spawner.start(cmd); err != nil {
		return errors.Join(fmt.Errorf("starting %s: %w", p.Name, err), log.Close())
	}
	p.running = &life{cmd: cmd, log: log, ended: make(chan struct{})}
	go p.await(p.running)
	return nil
}

// await takes note of the end of a life.
func (p *Process) await(l *life) {
	l.err = l.cmd.Wait()
	_ = l.log.Close()
	p.mu.Lock()
	if p.running == l {
		p.running = nil
	}
	meant := l.meant
	p.mu.Unlock()
	close(l.ended)
	if !meant {
		p.failed(fmt.Errorf("%s ended by itself (%w); its log is %s", p.Name, cmpErr(l.err), p.log))
	}
}

var errNoReason = errors.New("exit status 0")

func cmpErr(err error) error {
	if err == nil {
		return errNoReason
	}
	return err
}

// Runs reports whether the process runs, frozen or not.
func (p *Process) Runs() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running != nil
}

// end marks the life that runs as one whose end is asked for, and returns it.
func (p *Process) end() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil {
		p.running.meant = true
	}
	return p.running
}

// Kill is kill -9. It returns when the process is gone.
func (p *Process) Kill() {
	if l := p.end(); l != nil {
		l.killed.Store(true)
		_ = l.cmd.Process.Kill() // Fails only when it is gone.
		<-l.ended
	}
}

// Stop asks the process to end in order and returns what it ended with. One that takes too long
// is killed, which is an error, too; whom [Process.Kill] ends meanwhile had no time to obey.
func (p *Process) Stop() error {
	l := p.end()
	if l == nil {
		return nil
	}
	_ = l.cmd.Process.Signal(syscall.SIGCONT) // Who is frozen cannot obey.
	_ = l.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-l.ended:
		if l.killed.Load() {
			return nil
		}
		return l.err
	case <-time.After(killedAfter):
		p.Kill()
		return fmt.Errorf("%s did not end within %s of SIGTERM", p.Name, killedAfter)
	}
}

// Freeze sends SIGSTOP and returns when every thread has stopped: on a busy machine that takes longer than a change
// takes to pass. It does nothing to a process that does not run.
func (p *Process) Freeze() {
	pid := p.signal(syscall.SIGSTOP)
	for deadline := time.Now().Add(frozenAfter); pid > 0 && !isStopped(pid) && time.Now().Before(deadline); {
		<-time.After(time.Millisecond)
	}
}

// Thaw sends SIGCONT. It does nothing to a process that does not run.
func (p *Process) Thaw() { p.signal(syscall.SIGCONT) }

// Dump makes a program written in Go write down what all its goroutines are doing, into its log, and end.
func (p *Process) Dump() {
	l := p.end()
	if l == nil {
		return
	}
	_ = l.cmd.Process.Signal(syscall.SIGCONT)
	_ = l.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-l.ended:
	case <-time.After(dumpedAfter):
		p.Kill()
	}
}

// signal sends a signal and returns the id of the process; 0 if it does not run.
func (p *Process) signal(s os.Signal) (pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		return 0
	}
	_ = p.running.cmd.Process.Signal(s)
	return p.running.cmd.Process.Pid
}

// poll calls try until it succeeds.
func poll(ctx context.Context, try func(context.Context) error) error {
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
