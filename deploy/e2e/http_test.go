//go:build e2e

package e2e

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// TestServicesUseHTTPOfOpenFGA runs services with a proxy before OpenFGA that counts the writes.
func TestServicesUseHTTPOfOpenFGA(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(free.Addr().(*net.TCPAddr).Port)
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	next := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "127.0.0.1:" + port})
	var writes atomic.Int64
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/write") || strings.HasSuffix(r.URL.Path, "/authorization-models") && r.Method == http.MethodPost {
			writes.Add(1)
		}
		next.ServeHTTP(w, r)
	}))
	defer between.Close()
	m := up(t, t.TempDir(), "--samples", "deploy/samples", "--openfga-http-port="+port,
		"--set=store-sync.openfga-target="+between.URL, "--set=tuple-sync.openfga-target="+between.URL)
	objects := m.objects(t)
	eventually(t, soon, "the sample is ready", func(ctx context.Context) error {
		return errors.Join(ready(ctx, objects.Resource(resource("stores")), "demo"), ready(ctx, objects.Resource(resource("authorizationmodels")), "demo-documents"))
	})
	check(t, m, "user:beth viewer document:roadmap", true)
	check(t, m, "user:carl viewer document:roadmap", false)
	if writes.Load() < 2 {
		t.Errorf("%d writes went over HTTP", writes.Load())
	}
	m.stop(t, os.Interrupt)
}
