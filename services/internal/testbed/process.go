package testbed

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

// spawnedEnv makes a test binary the service that it tests.
const spawnedEnv = "ENTAIL_TEST_SPAWNED"

// Process is a service in a process of its own, so that it can be killed.
type Process struct{ *exec.Cmd }

// Spawned reports whether this test binary is to be the service, with flags as that has them; it then ends with who started it.
func Spawned() bool {
	if os.Getenv(spawnedEnv) == "" {
		return false
	}
	go func() { // A test that dies leaves nothing behind.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3) //nolint:forbidigo // This is a main then.
	}()
	return true
}

// Spawn starts this test binary as the named service, whose TestMain asks [Spawned]. It ends with the test at the latest.
func Spawn(t testing.TB, name string, nats *NATSServer, kube *KubeServer, flags ...string) Process {
	t.Helper()
	surroundings := []string{"--nats-url", nats.URLOf(name), "--kubeconfig", kube.Kubeconfig(name), "--auth", "none", "--listen", "127.0.0.1:0"}
	p := Process{exec.Command(os.Args[0], append(surroundings, flags...)...)} //nolint:gosec // It is this very program.
	p.Env = append(os.Environ(), spawnedEnv+"=1")
	p.Stderr = t.Output()
	if _, err := p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// Signal sends a signal, unless the process has ended.
func (p Process) Signal(s os.Signal) { _ = p.Process.Signal(s) }

// Kill is kill -9.
func (p Process) Kill() {
	_ = p.Process.Kill() // Fails when it has ended.
	_ = p.Wait()
}
