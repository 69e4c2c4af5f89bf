//go:build e2e

package e2e

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestEntailUpNamesFlagOfPortInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	args := append([]string{"up", "--state-dir", t.TempDir()}, append(anyPorts(), "--nats-port="+port)...)
	cmd := entail(t, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "port "+port+" for NATS is taken") ||
		!strings.Contains(string(out), "--nats-port") {
		t.Errorf("%v: %s", err, out)
	}
}

// stateBelongsToOneProcess starts a second process on the state directory of a running one.
func stateBelongsToOneProcess(t *testing.T, m *machine, state string) {
	t.Helper()
	cmd := entail(t, append([]string{"up", "--state-dir", state}, anyPorts()...)...)
	out, err := cmd.CombinedOutput()
	if want := "in use by process " + strconv.Itoa(m.process.Process.Pid); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), want) {
		t.Errorf("%v: %s, want %q in it", err, out, want)
	}
}

// The starts run in parallel, because each mostly waits.
func TestEntailUpEndsInOrderWhenInterruptedDuringStart(t *testing.T) {
	for _, step := range []string{"starting servers", "applying CRDs", "starting services"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			said := &words{}
			cmd := entail(t, append([]string{"up", "--state-dir", t.TempDir()}, anyPorts()...)...)
			cmd.Stderr = said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			exited := make(chan error, 1)
			go func() { exited <- cmd.Wait() }()
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			tooLate := time.After(readyTimeout)
			for !strings.Contains(said.String(), step) {
				select {
				case err := <-exited:
					t.Fatalf("ended before %q: %v\n%s", step, err, said)
				case <-time.After(20 * time.Millisecond):
				case <-tooLate:
					t.Fatalf("%q was not printed:\n%s", step, said)
				}
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if err := <-exited; err != nil {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
}
