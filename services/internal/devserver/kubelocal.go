package devserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/entail-dev/entail/services/internal/backoff"
)

const (
	kubeReadyTimeout = 90 * time.Second
	kubeStopTimeout  = 15 * time.Second
	kubeRetry        = 200 * time.Millisecond
	// readyBytes bounds the line with which kube-local reports that it is ready.
	readyBytes = 4 << 10
)

// inUse is part of kube-local's error for a directory that another kube-local uses.
const inUse = "is in use by another kube-local"

var errDirInUse = errors.New("the directory is in use")

// KubeLocalConfig configures a local Kubernetes API server.
type KubeLocalConfig struct {
	// Binary is bin/kube-local. See [FindKubeLocal].
	Binary string
	// Dir holds all state: objects, certificates, kubeconfigs, the log and the port.
	Dir string
	// Port is the port to listen on. With 0, the server uses the port of its last start, or a free port.
	Port int
	// Users lists users that get a kubeconfig Dir/NAME.kubeconfig. The form is NAME, NAME:GROUP,GROUP or
	// system:serviceaccount:NAMESPACE:NAME.
	Users []string
	// AuthorizationConfig is an authorization configuration file for the API server. If it is empty, only RBAC
	// authorizes.
	AuthorizationConfig string
	// APIServerArgs lists further flags of the API server, each as --flag=value.
	APIServerArgs []string
	// UnsafeNoFsync makes the server not wait for the disk. A power failure can then destroy Dir.
	UnsafeNoFsync bool
}

// KubeLocal is a running Kubernetes API server.
type KubeLocal struct {
	// Kubeconfig is the kubeconfig file of an administrator. Server is the server's URL.
	Kubeconfig, Server string

	process    *exec.Cmd
	stdin      io.Closer
	stderrTail *logTail
	ended      chan struct{}
	endErr     error
}

// StartKubeLocal starts the API server and returns when it answers. The server ends with this process, even if this
// process is killed. If the server of a killed process still uses the directory, StartKubeLocal waits until it has
// ended.
func StartKubeLocal(ctx context.Context, cfg KubeLocalConfig) (*KubeLocal, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, kubeReadyTimeout, fmt.Errorf("not ready after %s", kubeReadyTimeout))
	defer cancel()
	for begun := time.Now(); ; {
		k, err := launchKubeLocal(ctx, cfg)
		if !errors.Is(err, errDirInUse) || time.Since(begun) > kubeStopTimeout || !backoff.Sleep(ctx, kubeRetry) {
			return k, err
		}
	}
}

func launchKubeLocal(ctx context.Context, cfg KubeLocalConfig) (*KubeLocal, error) {
	k := &KubeLocal{process: exec.Command(cfg.Binary, cfg.commandArguments()...), stderrTail: &logTail{}, ended: make(chan struct{})}
	k.process.Stderr = k.stderrTail
	detachChild(k.process)
	stdin, err := k.process.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting kube-local: %w", err)
	}
	stdout, err := k.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting kube-local: %w", err)
	}
	k.stdin = stdin
	if err := k.process.Start(); err != nil {
		return nil, describeStartError(cfg.Binary, err)
	}
	ready := make(chan error, 1)
	go func() {
		ready <- k.awaitReadyLine(stdout)
		_, _ = io.Copy(io.Discard, stdout)
		k.endErr = k.process.Wait()
		close(k.ended)
	}()
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		k.Kill()
		if strings.Contains(k.stderrTail.String(), inUse) {
			err = errDirInUse
		}
		return nil, fmt.Errorf("starting kube-local in %s: %w\n%s", cfg.Dir, err, k.stderrTail)
	}
	return k, nil
}

// AdminConfig returns the client configuration of an administrator.
func (k *KubeLocal) AdminConfig() (*rest.Config, error) { return readKubeconfig(k.Kubeconfig) }

// UserConfig returns the client configuration of a user with this NAME; see KubeLocalConfig.Users.
func (k *KubeLocal) UserConfig(user string) (*rest.Config, error) {
	return readKubeconfig(k.UserKubeconfigPath(user))
}

// UserKubeconfigPath returns the kubeconfig file of a user with this NAME; see KubeLocalConfig.Users.
func (k *KubeLocal) UserKubeconfigPath(user string) string {
	return filepath.Join(filepath.Dir(k.Kubeconfig), user+".kubeconfig")
}

func readKubeconfig(file string) (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig of kube-local: %w", err)
	}
	return cfg, nil
}

// Done returns a channel that is closed when the server has ended.
func (k *KubeLocal) Done() <-chan struct{} { return k.ended }

// HasEnded reports whether the server has ended.
func (k *KubeLocal) HasEnded() bool {
	select {
	case <-k.ended:
		return true
	default:
		return false
	}
}

// Stop makes the server stop and waits for its end. It kills the server after kubeStopTimeout.
func (k *KubeLocal) Stop() error {
	_ = k.stdin.Close() // It fails only if the process has ended.
	select {
	case <-k.ended:
	case <-time.After(kubeStopTimeout):
		k.Kill()
		return fmt.Errorf("stopping kube-local: killed, for it did not end within %s", kubeStopTimeout)
	}
	if k.endErr != nil {
		return fmt.Errorf("stopping kube-local: %w\n%s", k.endErr, k.stderrTail)
	}
	return nil
}

// Kill ends the server at once, as a crash would.
func (k *KubeLocal) Kill() {
	// Both fail only if the process has ended.
	_ = k.process.Process.Kill()
	_ = k.stdin.Close()
	<-k.ended
}

// awaitReadyLine waits for the line with which the server reports that it is ready.
func (k *KubeLocal) awaitReadyLine(stdout io.Reader) error {
	line, err := bufio.NewReader(io.LimitReader(stdout, readyBytes)).ReadBytes('\n')
	if err != nil {
		return errors.New("it ended before it was ready")
	}
	var ready struct{ Kubeconfig, Server string }
	if err := json.Unmarshal(line, &ready); err != nil {
		return fmt.Errorf("reading its ready line: %w", err)
	}
	k.Kubeconfig, k.Server = ready.Kubeconfig, ready.Server
	return nil
}

func (c KubeLocalConfig) commandArguments() []string {
	args := []string{"--exit-with-stdin", "--data-dir", c.Dir, "--port", strconv.Itoa(c.Port)}
	if c.UnsafeNoFsync {
		args = append(args, "--unsafe-no-fsync")
	}
	if c.AuthorizationConfig != "" {
		args = append(args, "--authorization-config", c.AuthorizationConfig)
	}
	for _, arg := range c.APIServerArgs {
		args = append(args, "--apiserver-arg", arg)
	}
	for _, user := range c.Users {
		args = append(args, "--user", user)
	}
	return args
}

func describeStartError(binary string, err error) error {
	if errors.Is(err, os.ErrNotExist) || binary == "" {
		return fmt.Errorf("starting kube-local: %q does not exist: run `make kube-local`", binary)
	}
	return fmt.Errorf("starting kube-local: %w", err)
}
