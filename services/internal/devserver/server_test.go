//go:build unix

package devserver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// shell returns a command that runs a script.
func shell(script string) *exec.Cmd { return exec.Command("/bin/sh", "-c", script) }

func stop(t testing.TB, s *ServerProcess) {
	t.Helper()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

func isNotReady(context.Context, int) error { return errors.New("not yet") }

func TestServerStartQuotesFailedServer(t *testing.T) {
	p := serverProgram{name: "NATS", ready: isNotReady, command: func(int) (*exec.Cmd, error) {
		return shell("echo the disk is full >&2; exit 3"), nil
	}}
	_, err := p.startServer(t.Context())
	for _, want := range []string{"starting NATS", "ended before it was ready", "exit status 3", "the disk is full"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q in it", err, want)
		}
	}
}

func TestServerStartRetriesAnotherPort(t *testing.T) {
	var ports []int
	p := serverProgram{name: "NATS"}
	p.command = func(port int) (*exec.Cmd, error) {
		if ports = append(ports, port); len(ports) > 1 {
			return shell("exec sleep 600"), nil
		}
		other, err := ListenLoopback("another program", port)
		if err == nil {
			t.Cleanup(func() { _ = other.Close() })
		}
		return shell("exit 1"), err
	}
	p.ready = func(context.Context, int) error {
		if len(ports) > 1 {
			return nil
		}
		return errors.New("not yet")
	}
	s, err := p.startServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, s)
	if len(ports) != 2 || s.Port() != ports[1] || ports[0] == ports[1] {
		t.Errorf("tried ports %v and has %d; want a second one", ports, s.Port())
	}
}

func TestServerStartNamesPortThatStaysTaken(t *testing.T) {
	other, err := ListenLoopback("another program", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = serverProgram{name: "NATS", port: PortOf(other.Addr())}.startServer(ctx)
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "taken by another program") {
		t.Errorf("got %v; want the port and what to do", err)
	}
}

func TestCanceledServerStartDoesNotLeaveProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var started *exec.Cmd
	p := serverProgram{name: "NATS", ready: func(context.Context, int) error { cancel(); return errors.New("not yet") }}
	p.command = func(int) (*exec.Cmd, error) {
		started = shell("exec sleep 600")
		return started, nil
	}
	if _, err := p.startServer(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want %v", err, context.Canceled)
	}
	if started.ProcessState == nil {
		t.Error("the process still runs")
	}
}

func TestServerThatEndedByItselfFailsToStop(t *testing.T) {
	p := serverProgram{name: "NATS", ready: func(context.Context, int) error { return nil }, command: func(int) (*exec.Cmd, error) { return shell("exec sleep 600"), nil }}
	s, err := p.startServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.child.Kill()
	if err := s.Stop(); err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Errorf("got %v; want an error", err)
	}
}

func TestCheckServerNameRecognizesNATS(t *testing.T) {
	listener, err := ListenLoopback("test", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(`INFO {"server_id":"N","server_name":"mine","version":"2"}` + "\r\n"))
			_ = conn.Close()
		}
	}()
	port := PortOf(listener.Addr())
	if err := checkServerName(t.Context(), "mine", port); err != nil {
		t.Error(err)
	}
	if err := checkServerName(t.Context(), "yours", port); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("got %v; want an error", err)
	}
}

// guardedEnv makes this test binary start a child that does not end by itself, and wait. The child keeps the named
// pipe in the variable open.
const guardedEnv = "ENTAIL_TEST_GUARDED"

func TestChildEndsWithKilledParent(t *testing.T) {
	if os.Getenv(guardedEnv) != "" {
		startGuarded(t)
		return
	}
	alive := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(alive, 0o600); err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	parent.Env = append(os.Environ(), guardedEnv+"="+alive)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(alive) // Blocks until the child has opened the pipe for writing.
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if n, err := reader.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d bytes, %v; want the end, for the child is gone", n, err)
	}
}

func startGuarded(t *testing.T) {
	t.Helper()
	child, err := StartChild(shell(`exec sleep 600 >"$` + guardedEnv + `"`))
	if err != nil {
		t.Fatal(err)
	}
	<-child.Done()
}
