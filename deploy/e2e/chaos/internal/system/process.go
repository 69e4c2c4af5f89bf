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

// killedAfter bounds the time that a process may take to end after SIGTERM.
const killedAfter = 30 * time.Second

// dumpedAfter bounds the time that a process may take to write its goroutines.
const dumpedAfter = 5 * time.Second

// frozenAfter bounds the wait of Freeze, because another blow may thaw the process meanwhile.
const frozenAfter = 10 * time.Second

// Process is a program that can be started, killed and frozen any number of times. All its runs write to one log.
type Process struct {
	// Name is unique in the system, such as tuple-sync-1.
	Name string

	path    string
	args    []string
	env     []string
	log     string
	spawner *childSpawner
	// failed is called when the process ends unexpectedly.
	failed func(error)

	mu      sync.Mutex
	running *processRun
}

// processRun is one run of a process.
type processRun struct {
	cmd   *exec.Cmd
	log   *os.File
	ended chan struct{}
	err   error
	// killed is true if the process was killed.
	killed atomic.Bool
	// meant is true if the end was requested.
	meant bool
}

// Start starts the process unless it is running.
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
	p.running = &processRun{cmd: cmd, log: log, ended: make(chan struct{})}
	go p.awaitEnd(p.running)
	return nil
}

// awaitEnd waits for the end of a run, and calls failed if the end was unexpected.
func (p *Process) awaitEnd(l *processRun) {
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
		p.failed(fmt.Errorf("%s ended by itself (%w); its log is %s", p.Name, errOrNoReason(l.err), p.log))
	}
}

var errNoReason = errors.New("exit status 0")

func errOrNoReason(err error) error {
	if err == nil {
		return errNoReason
	}
	return err
}

// IsRunning reports whether the process is running, frozen or not.
func (p *Process) IsRunning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running != nil
}

// markEnding marks the end of the present run as requested, and returns the run.
func (p *Process) markEnding() *processRun {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil {
		p.running.meant = true
	}
	return p.running
}

// Kill sends SIGKILL, and returns when the process has ended.
func (p *Process) Kill() {
	if l := p.markEnding(); l != nil {
		l.killed.Store(true)
		_ = l.cmd.Process.Kill() // This fails only if it has ended.
		<-l.ended
	}
}

// Stop sends SIGTERM and returns the process' error. After killedAfter it kills the process and returns an error. If
// [Process.Kill] ends the process meanwhile, Stop returns nil.
func (p *Process) Stop() error {
	l := p.markEnding()
	if l == nil {
		return nil
	}
	_ = l.cmd.Process.Signal(syscall.SIGCONT) // A frozen process cannot handle signals.
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

// Freeze sends SIGSTOP and returns when every thread has stopped. On a busy machine that takes longer than a change
// takes to be applied. It does nothing if the process is not running.
func (p *Process) Freeze() {
	pid := p.sendSignal(syscall.SIGSTOP)
	for deadline := time.Now().Add(frozenAfter); pid > 0 && !isStopped(pid) && time.Now().Before(deadline); {
		<-time.After(time.Millisecond)
	}
}

// Thaw sends SIGCONT. It does nothing if the process is not running.
func (p *Process) Thaw() { p.sendSignal(syscall.SIGCONT) }

// DumpGoroutines makes a Go program write its goroutines to its log and end.
func (p *Process) DumpGoroutines() {
	l := p.markEnding()
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

// sendSignal sends a signal and returns the process ID; 0 if the process is not running.
func (p *Process) sendSignal(s os.Signal) (pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		return 0
	}
	_ = p.running.cmd.Process.Signal(s)
	return p.running.cmd.Process.Pid
}

// pollUntil calls try until it succeeds or ctx ends.
func pollUntil(ctx context.Context, try func(context.Context) error) error {
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
