package testenv

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

// spawnedEnv is the environment variable that makes a test binary run as the service.
const spawnedEnv = "ENTAIL_TEST_SPAWNED"

// Process is a service in a separate process, which a test can kill.
type Process struct{ *exec.Cmd }

// PrepareIfSpawned reports whether this test binary must run as the service, with the service's flags. It also makes
// this process end together with the process that started it.
func PrepareIfSpawned() bool {
	if os.Getenv(spawnedEnv) == "" {
		return false
	}
	go func() { // This process ends when its parent ends.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3) //nolint:forbidigo // This is a main then.
	}()
	return true
}

// SpawnService starts this test binary as the named service. Its TestMain must call [PrepareIfSpawned]. The process
// ends when the test ends, if not earlier.
func SpawnService(t testing.TB, name string, nats *NATSServer, kube *KubeServer, flags ...string) Process {
	t.Helper()
	surroundings := []string{"--nats-url", nats.URLOf(name), "--kubeconfig", kube.ServiceKubeconfig(name), "--auth", "none", "--listen", "127.0.0.1:0"}
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

// Signal sends a signal. It ignores the error if the process has ended.
func (p Process) Signal(s os.Signal) { _ = p.Process.Signal(s) }

// Kill kills the process with SIGKILL and waits for its end.
func (p Process) Kill() {
	_ = p.Process.Kill() // It fails only if the process has ended.
	_ = p.Wait()
}
