//go:build integration

package watcher_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher"
)

func readyz(url string) (status int, text string, err error) {
	response, err := http.Get(url + "/readyz")
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// ready waits until a watcher reports that it is ready or, with why, that it is not and the reason.
func ready(t testing.TB, url, why string) {
	t.Helper()
	testenv.Eventually(t, within, func() error {
		status, text, err := readyz(url)
		if err == nil && (why == "") != (status == http.StatusOK) || !strings.Contains(text, why) {
			err = fmt.Errorf("readyz is %d %s, want %q", status, text, why)
		}
		return err
	})
}

// The Lease can be renewed, and watches are open: only reads show that the API server answers.
func TestLeaderResignsWhenReadsAreNotAnswered(t *testing.T) {
	b := newTestEnv(t)
	_, leader := b.runOn(b.kube.ServiceConfig(t, topology.Watcher))
	ready(t, leader, "")
	b.leads("first leads")
	aside := testenv.StartKube(t)
	_, standby := b.runOn(aside.ServiceConfig(t, topology.Watcher))
	ready(t, standby, "")
	b.kube.FailBefore(func(ctx context.Context, op string) error {
		if !strings.HasSuffix(op, "/namespaces/kube-system") {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})
	first, began := b.holder(), time.Now()
	testenv.Eventually(t, within, func() error {
		if now := b.holder(); now == "" || now == first {
			return fmt.Errorf("%q leads", now)
		}
		return nil
	})
	t.Logf("another replica leads after %s", time.Since(began).Round(time.Millisecond))
	b.kube.FailBefore(nil)
	b.leads("second leads")
}

func TestWatcherIsNotReadyWhileAPIServerIsSilent(t *testing.T) {
	b := newTestEnv(t)
	_, leader := b.runOn(b.kube.ServiceConfig(t, topology.Watcher))
	aside := testenv.StartKube(t)
	_, standby := b.runOn(aside.ServiceConfig(t, topology.Watcher))
	ready(t, leader, "")
	ready(t, standby, "")
	silence := func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
	aside.FailBefore(silence)
	ready(t, standby, "lease: the Lease was not read for 1")
	ready(t, leader, "")
	b.kube.FailBefore(silence)
	ready(t, leader, "lease: the Lease was not read for 1")
	b.kube.FailBefore(nil)
	aside.FailBefore(nil)
	ready(t, leader, "")
	ready(t, standby, "")
}

func TestWatcherIsReadyAfterSnapshot(t *testing.T) {
	b := newTestEnv(t)
	b.kube.FailBefore(func(_ context.Context, op string) error {
		if strings.HasSuffix(op, "/stores") {
			return errors.New("no")
		}
		return nil
	})
	_, leader := b.runOn(b.kube.ServiceConfig(t, topology.Watcher))
	ready(t, leader, "cluster: "+kinds.Stores().GroupResource.String()+" is not followed: ")
	b.kube.FailBefore(nil)
	ready(t, leader, "")
}

// holder returns the replica that holds the Lease.
func (b *testEnv) holder() string {
	b.t.Helper()
	cfg := watcher.Defaults()
	leases := b.kube.DynamicClient(b.t).Resource(coordinationv1.SchemeGroupVersion.WithResource("leases"))
	held, err := leases.Namespace(cfg.LeaseNamespace).Get(b.t.Context(), cfg.LeaseName, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	holder, _, _ := unstructured.NestedString(held.Object, "spec", "holderIdentity")
	return holder
}
