package service

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	"github.com/entail-dev/entail/services/internal/rpc"
)

func TestTracesOfCallsGoToTheEndpointWithTheServicesName(t *testing.T) {
	exports := make(chan []byte, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && r.URL.Path == "/v1/traces" {
			exports <- body
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	s := &slowShop{entered: make(chan struct{}), finish: make(chan struct{}), steps: &sequence{}}
	close(s.finish)
	tr := try(t, startNATS(t, -1, nil).ClientURL(), func(context.Context, *Runtime) (App, error) {
		return App{Handlers: []rpc.Handler{s.handler()}, Tasks: []func(context.Context) error{waiting}}, nil
	})
	tr.mustBecomeReady(t)
	if _, err := storev1connect.NewStoreServiceClient(http.DefaultClient, tr.url).ListStores(t.Context(), &storev1.ListStoresRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := tr.stop(); err != nil {
		t.Fatal(err)
	}
	close(exports)
	var all []byte
	for body := range exports {
		all = append(all, body...)
	}
	for _, want := range []string{"entail-test-sync", "entail.store.v1.StoreService/ListStores"} {
		if !bytes.Contains(all, []byte(want)) {
			t.Errorf("traces lack %q: %q", want, all)
		}
	}
}

func TestNothingIsExportedUnlessAskedFor(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		want bool
	}{
		"nothing set":    {nil, false},
		"endpoint":       {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a"}, true},
		"only of traces": {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a"}, true},
		"switched off":   {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_SDK_DISABLED": "TRUE"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isOTLPConfigured(func(name string) string { return test.env[name] }); got != test.want {
				t.Errorf("exporting is %t", got)
			}
		})
	}
}
