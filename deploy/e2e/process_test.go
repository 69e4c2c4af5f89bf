//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
)

const (
	root         = "../.."
	readyTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
)

// anyPorts returns flags for free ports, so that tests do not disturb each other or other programs.
func anyPorts() []string {
	var flags []string
	for _, server := range []string{"kube", "nats", "openfga", "openfga-http", "watcher", "store-sync", "tuple-sync", "implied-role", "admission", "store-admission", "webhook", "authorizer", "webhook-admission", "opensearch-sync", "opensearch"} {
		flags = append(flags, "--"+server+"-port=0")
	}
	return flags
}

// entail returns a command that runs the built program in the checkout.
func entail(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(cmp.Or(os.Getenv("ENTAIL_BIN"), filepath.Join(root, "bin")), "entail"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = root
	return cmd
}

// machine is a running `entail up`.
type machine struct {
	process *exec.Cmd
	words   *words
	exited  chan error
	http    http.Client

	Kubernetes, Kubeconfig, SyncService, StoreService, TupleService, InferenceService, AccessService, OpenFGAHTTP, OpenSearch, OpenSearchService string

	Seconds float64
}

// up starts `entail up` on a state directory and waits until it is ready.
func up(t *testing.T, stateDir string, flags ...string) *machine {
	t.Helper()
	return upIn(t, root, stateDir, flags...)
}

// upIn starts `entail up` in a folder, which may be outside of the checkout.
func upIn(t *testing.T, dir, stateDir string, flags ...string) *machine {
	t.Helper()
	args := append([]string{"up", "-o", "json", "--state-dir", stateDir}, append(anyPorts(), flags...)...)
	m := &machine{process: entail(t, args...), words: &words{}, exited: make(chan error, 1)}
	m.process.Dir, m.process.Stderr = dir, m.words
	stdout, err := m.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.process.Start(); err != nil {
		t.Fatalf("%v: run `make bin/entail`", err)
	}
	ready := make(chan error, 1)
	go func() {
		ready <- json.NewDecoder(stdout).Decode(m)
		_, _ = io.Copy(io.Discard, stdout)
		m.exited <- m.process.Wait()
	}()
	t.Cleanup(func() { _ = m.process.Process.Kill() })
	select {
	case err := <-ready:
		if err != nil {
			t.Fatalf("entail up ended: %v\n%s", <-m.exited, m.words)
		}
	case <-time.After(readyTimeout):
		t.Fatalf("entail up is not ready after %s\n%s", readyTimeout, m.words)
	}
	t.Logf("ready after %.1f s", m.Seconds)
	return m
}

// stop sends a signal, and requires that the process ends in order.
func (m *machine) stop(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := m.process.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-m.exited:
		if err != nil {
			t.Fatalf("after %s: %v\n%s", signal, err, m.words)
		}
	case <-time.After(stopTimeout):
		_ = m.process.Process.Signal(syscall.SIGQUIT)
		t.Fatalf("still running %s after %s\n%s\n%v", stopTimeout, signal, m.words, <-m.exited)
	}
}

// config returns the configuration for the Kubernetes API, without a limit on requests.
func (m *machine) config(t *testing.T) *rest.Config {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", m.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	return cfg
}

// objects returns a client of the Kubernetes API.
func (m *machine) objects(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(m.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (m *machine) tuples() tuplev1connect.TupleServiceClient {
	return tuplev1connect.NewTupleServiceClient(&m.http, m.TupleService)
}

// servers returns the environment variables by which client commands find the query APIs.
func (m *machine) servers() []string {
	return []string{
		"ENTAIL_SERVER=" + m.SyncService, "ENTAIL_INFERENCE_SERVER=" + m.InferenceService, "ENTAIL_STORE_SERVER=" + m.StoreService,
		"ENTAIL_ACCESS_SERVER=" + m.AccessService, "ENTAIL_TUPLE_SERVER=" + m.TupleService, "ENTAIL_OPENSEARCH_SERVER=" + m.OpenSearchService,
	}
}

// ask runs a client command of entail and returns its output and exit code.
func (m *machine) ask(t *testing.T, args ...string) (out []byte, code int) {
	t.Helper()
	cmd := entail(t, args...)
	cmd.Env = append(os.Environ(), m.servers()...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		t.Logf("entail %s: %s", strings.Join(args, " "), exit.Stderr)
	}
	return out, cmd.ProcessState.ExitCode()
}

// eventually calls ask every few milliseconds until it returns nil, and fails the test after within.
func eventually(t *testing.T, within time.Duration, what string, ask func(context.Context) error) {
	t.Helper()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			t.Logf("%s after %s", what, time.Since(begun).Round(time.Millisecond))
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s: %v", within, what, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// words holds the output of a process. It can be read while the process runs.
type words struct {
	mu   sync.Mutex
	said bytes.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.Write(p)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.String()
}
