//go:build integration

// Package integration starts the built kube-local and looks at it from
// outside, as `entail up` and the integration tests of the services do.
package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Generous bounds: they end a test that hangs, they measure nothing.
const (
	startTimeout = 90 * time.Second
	stopTimeout  = time.Minute
	waitTimeout  = 60 * time.Second
)

// process is a running kube-local.
type process struct {
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`

	command *exec.Cmd
	stdin   io.WriteCloser
	stderr  *bytes.Buffer
	lines   chan []byte
	exited  chan error
}

func binary(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../../bin/kube-local")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run deploy/local/build.sh first", err)
	}
	return path
}

// spawn starts kube-local on a data directory and does not wait for it.
func spawn(t *testing.T, dataDir string, args ...string) *process {
	t.Helper()
	p := &process{stderr: &bytes.Buffer{}, lines: make(chan []byte, 16), exited: make(chan error, 1)}
	p.command = exec.Command(binary(t), append([]string{"--data-dir", dataDir, "--exit-with-stdin", "--unsafe-no-fsync"}, args...)...)
	p.command.Stderr = p.stderr
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			p.lines <- bytes.Clone(scanner.Bytes())
		}
		close(p.lines)
		p.exited <- p.command.Wait()
	}()
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	return p
}

// launch starts kube-local and waits until it says that it is ready.
func launch(t *testing.T, dataDir string, args ...string) *process {
	t.Helper()
	p := spawn(t, dataDir, args...)
	select {
	case line, ok := <-p.lines:
		if !ok {
			t.Fatalf("kube-local ended before it was ready: %v\n%s", <-p.exited, p.stderr)
		}
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(p); err != nil {
			t.Fatalf("the first line %q is not the ready line: %v", line, err)
		}
	case <-time.After(startTimeout):
		t.Fatalf("kube-local is not ready after %s\n%s", startTimeout, p.stderr)
	}
	return p
}

// wait returns how the process ended.
func (p *process) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.exited:
		return err
	case <-time.After(stopTimeout):
		t.Fatalf("kube-local still runs after %s", stopTimeout)
		return nil
	}
}

// stop ends the process as a user would, and expects that all is well.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(t); err != nil {
		t.Fatalf("kube-local ended with %v\n%s", err, p.stderr)
	}
}

func (p *process) config(t *testing.T, kubeconfig string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func (p *process) admin(t *testing.T) kubernetes.Interface {
	t.Helper()
	return kubernetes.NewForConfigOrDie(p.config(t, p.Kubeconfig))
}

func (p *process) dynamic(t *testing.T) dynamic.Interface {
	t.Helper()
	return dynamic.NewForConfigOrDie(p.config(t, p.Kubeconfig))
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.After(waitTimeout); !condition(); {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			t.Fatalf("not so after %s: %s", waitTimeout, what)
		}
	}
}
