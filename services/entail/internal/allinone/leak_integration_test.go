//go:build integration

package allinone

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/entail-dev/entail/services/internal/leak"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// On disk, passwords are only in the store of the API server, which holds Secrets. They are in no file of NATS, OpenFGA
// or OpenSearch, and in no log.
func TestPasswordsAreStoredOnlyByAPIServer(t *testing.T) {
	const before, after = "cobalt-Ferret-91-orbit", "cobalt-Ferret-92-orbit" // The sample has the first one.
	m := upWithOpenSearch(t)
	loginOf(t, m.at, before)
	access, err := clientcmd.BuildConfigFromFlags("", m.at.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	change := fmt.Appendf(nil, `{"stringData":{"anna":%q},"metadata":{"annotations":{%q:%[1]q}}}`, after, corev1.LastAppliedConfigAnnotation)
	secrets := kubernetes.NewForConfigOrDie(access).CoreV1().Secrets("default")
	if _, err := secrets.Patch(t.Context(), "search-passwords", types.MergePatchType, change, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	loginOf(t, m.at, after)
	m.stop()
	kept := filepath.Join(m.dir, "kube", "etcd")
	if found, err := leak.FindSecrets(os.DirFS(kept), before, after); err != nil || len(found) == 0 {
		t.Errorf("what the API server keeps is not in %s: %v", kept, err)
	}
	if err := os.RemoveAll(kept); err != nil {
		t.Fatal(err)
	}
	if found, err := leak.FindSecrets(os.DirFS(m.dir), before, after); err != nil || len(found) > 0 {
		t.Errorf("%q, %v", found, err)
	}
	planted := []byte("password=" + base64.StdEncoding.EncodeToString([]byte(after)))
	if err := os.WriteFile(filepath.Join(m.dir, "openfga.sqlite"), planted, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := leak.FindSecrets(os.DirFS(m.dir), after); err != nil || len(found) == 0 {
		t.Errorf("what was planted is not found: %v", err)
	}
}

// upMachine is a running `entail up --opensearch` with the samples.
type upMachine struct {
	at   Endpoints
	dir  string
	stop func()
}

// upWithOpenSearch starts an upMachine. It stops with the test at the latest.
func upWithOpenSearch(t testing.TB) *upMachine {
	t.Helper()
	cfg := Defaults()
	cfg.StateDir, cfg.Ports, cfg.OpenSearch, cfg.Samples, cfg.Progress = stateDirectory(t), Ports{}, true, BuiltIn, t.Output()
	ready, ended := make(chan Endpoints, 1), make(chan error, 1)
	cfg.Ready = func(e Endpoints) error { ready <- e; return nil }
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { ended <- Run(ctx, cfg) }()
	m := &upMachine{dir: cfg.StateDir, stop: sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})}
	select {
	case m.at = <-ready:
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(m.stop)
	return m
}

// loginOf waits until user anna of the sample can log in.
func loginOf(t testing.TB, at Endpoints, password string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	testenv.Eventually(t, time.Minute, func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.OpenSearch+"/_plugins/_security/authinfo", http.NoBody)
		if err != nil {
			return err
		}
		request.SetBasicAuth("anna", password)
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
			return errors.Join(fmt.Errorf("anna logs in: %d", answer.StatusCode), err)
		}
		return nil
	})
}
