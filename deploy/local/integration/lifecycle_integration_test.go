//go:build integration

package integration

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRestartKeepsObjectsPortAndTokens(t *testing.T) {
	dataDir := t.TempDir()
	first := launch(t, dataDir)
	createConfigMap(t, first, "kept")
	token := createToken(t, first)
	first.stop(t)

	second := launch(t, dataDir)
	if second.Server != first.Server {
		t.Errorf("server after the restart = %s, want %s", second.Server, first.Server)
	}
	expectConfigMap(t, second, "kept")
	expectToken(t, second, token)
	second.stop(t)
}

func TestKillKeepsObjects(t *testing.T) {
	dataDir := t.TempDir()
	first := launch(t, dataDir)
	createConfigMap(t, first, "kept")
	if err := first.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.wait(t)

	second := launch(t, dataDir)
	expectConfigMap(t, second, "kept")
	second.stop(t)
}

func TestClosedStdinStopsServer(t *testing.T) {
	p := launch(t, t.TempDir())
	watch, err := p.admin(t).CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if err := p.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(t); err != nil {
		t.Errorf("kube-local ended with %v\n%s", err, p.stderr)
	}
	if line, ok := <-p.lines; ok {
		t.Errorf("standard output holds more than the ready line: %q", line)
	}
	if p.stderr.Len() > 0 {
		t.Errorf("standard error is not empty: %s", p.stderr)
	}
}

func TestSignalDuringStartStopsServer(t *testing.T) {
	dataDir := t.TempDir()
	p := spawn(t, dataDir)
	eventually(t, "etcd has begun", func() bool {
		_, err := os.Stat(filepath.Join(dataDir, "etcd", "member", "snap", "db"))
		return err == nil
	})
	p.stop(t)

	// Hooks of the API server that wait for its informers end the process when they are told to stop.
	_, port, _ := net.SplitHostPort(freeAddress(t))
	p = spawn(t, dataDir, "--port", port)
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	eventually(t, "the API server answers", func() bool {
		conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	p.stop(t)
	launch(t, dataDir).stop(t)
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestDataDirectoryExcludesSecondProcess(t *testing.T) {
	dataDir := t.TempDir()
	first := launch(t, dataDir)
	second := spawn(t, dataDir)
	if err := second.wait(t); err == nil {
		t.Fatal("two processes share a data directory")
	}
	for _, want := range []string{dataDir, strconv.Itoa(first.command.Process.Pid), "--data-dir"} {
		if !strings.Contains(second.stderr.String(), want) {
			t.Errorf("message %q does not say %q", second.stderr, want)
		}
	}
	first.stop(t)
}

func TestPortInUseIsRefused(t *testing.T) {
	thief, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer thief.Close()
	_, port, _ := net.SplitHostPort(thief.Addr().String())
	p := spawn(t, t.TempDir(), "--port", port)
	if err := p.wait(t); err == nil {
		t.Fatal("two processes share a port")
	}
	if want := "port " + port + " of 127.0.0.1 is in use"; !strings.Contains(p.stderr.String(), want) {
		t.Errorf("message = %q, want %q", p.stderr, want)
	}
}

func TestInvalidAPIServerArgumentIsReported(t *testing.T) {
	p := spawn(t, t.TempDir(), "--apiserver-arg=--no-such-flag=1")
	if err := p.wait(t); err == nil {
		t.Fatal("an unknown flag went through")
	}
	if !strings.Contains(p.stderr.String(), "unknown flag: --no-such-flag") {
		t.Errorf("message = %q, want the name of the flag", p.stderr)
	}
}

func TestDataDirectoryWithLongName(t *testing.T) {
	dataDir := filepath.Join(t.TempDir(), strings.Repeat("long", 50))
	launch(t, dataDir).stop(t)
}

func TestServerListensOnIPv6Loopback(t *testing.T) {
	p := launch(t, t.TempDir(), "--bind-address", "::1")
	if !strings.HasPrefix(p.Server, "https://[::1]:") {
		t.Errorf("server = %s, want one on ::1", p.Server)
	}
	createConfigMap(t, p, "reached")
	p.stop(t)
}

func TestServerIsReachedByName(t *testing.T) {
	// An address that only this machine has, and that is not the one that it listens on.
	p := launch(t, t.TempDir(), "--bind-address", "0.0.0.0", "--server-name", "127.0.0.2")
	if !strings.HasPrefix(p.Server, "https://127.0.0.2:") {
		t.Errorf("server = %s, want one at 127.0.0.2", p.Server)
	}
	createConfigMap(t, p, "reached")
	p.stop(t)
}

func createConfigMap(t *testing.T, p *process, name string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := p.admin(t).CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func expectConfigMap(t *testing.T, p *process, name string) {
	t.Helper()
	if _, err := p.admin(t).CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Errorf("an object did not survive: %v", err)
	}
}
