package devserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
)

const (
	serverReadyTimeout = time.Minute // A tenth of a second is enough unless the machine is busy.
	serverStopTimeout  = 15 * time.Second
	readyPoll          = 2 * time.Millisecond
	// portRetry is the wait before another attempt on a port that another program uses.
	portRetry = 50 * time.Millisecond
)

// ServerProcess is NATS or OpenFGA in a child process, which ends with this process.
type ServerProcess struct {
	name  string
	port  int
	child *ChildProcess
	log   *logTail
}

// Port returns the port that the server listens on.
func (s *ServerProcess) Port() int { return s.port }

// LogTail returns the end of the server's log.
func (s *ServerProcess) LogTail() string { return s.log.String() }

// Stop sends SIGTERM and waits for the end. The state on disk remains. It returns an error if the server had already
// ended.
func (s *ServerProcess) Stop() error {
	if s.child.HasEnded() {
		return fmt.Errorf("%s ended by itself: %w\n%s", s.name, s.child.Err(), s.log)
	}
	if err := s.child.Stop(serverStopTimeout); err != nil {
		return fmt.Errorf("stopping %s: %w\n%s", s.name, err, s.log)
	}
	return nil
}

// serverProgram describes how to start a server.
type serverProgram struct {
	name string
	// port is the port to listen on. With 0, a free port is used.
	port int
	// command returns the command that serves on a port.
	command func(port int) (*exec.Cmd, error)
	// ready returns nil when the server accepts connections on a port.
	ready func(ctx context.Context, port int) error
}

// startServer starts the server and returns when it is ready. It retries while another program uses the port.
func (p serverProgram) startServer(ctx context.Context) (*ServerProcess, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, serverReadyTimeout, fmt.Errorf("not ready after %s", serverReadyTimeout))
	defer cancel()
	for {
		s, err := p.launchServerOnce(ctx)
		if !errors.Is(err, syscall.EADDRINUSE) || !backoff.Sleep(ctx, portRetry) {
			return s, err
		}
	}
}

func (p serverProgram) launchServerOnce(ctx context.Context) (*ServerProcess, error) {
	port, err := ReservePort(p.name, p.port)
	if err != nil {
		return nil, err
	}
	command, err := p.command(port)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	s := &ServerProcess{name: p.name, port: port, log: &logTail{}}
	command.Stdout, command.Stderr = s.log, s.log
	if s.child, err = StartChild(command); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	if err = s.awaitReady(ctx, p.ready); err == nil {
		return s, nil
	}
	s.child.Kill()
	if _, taken := ReservePort(p.name, port); taken != nil {
		return nil, taken
	}
	return nil, fmt.Errorf("starting %s: %w\n%s", p.name, err, s.log)
}

func (s *ServerProcess) awaitReady(ctx context.Context, ready func(context.Context, int) error) error {
	for {
		err := ready(ctx, s.port)
		if s.child.HasEnded() {
			return fmt.Errorf("it ended before it was ready: %w", errors.Join(s.child.Err(), err))
		}
		if err == nil {
			return nil
		}
		if !backoff.Sleep(ctx, readyPoll) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// dialLocal opens a connection to a local port. The deadline of ctx bounds its reads and writes.
func dialLocal(ctx context.Context, port int) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", LoopbackAddress(port))
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		err = conn.SetDeadline(deadline)
	}
	return conn, err
}

// makePrivateDir creates a directory that only this user can read.
func makePrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating the directory of its files: %w", err)
	}
	return nil
}
