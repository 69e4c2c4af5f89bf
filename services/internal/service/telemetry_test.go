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

func TestTracesAreExportedWithServiceName(t *testing.T) {
	exports := make(chan []byte, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && r.URL.Path == "/v1/traces" {
			exports <- body
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	s := &slowStoreService{entered: make(chan struct{}), finish: make(chan struct{}), steps: &stepRecorder{}}
	close(s.finish)
	tr := runService(t, startNATS(t, -1, nil).ClientURL(), func(context.Context, *Runtime) (App, error) {
		return App{Handlers: []rpc.Handler{s.handler()}, Tasks: []func(context.Context) error{waitingTask}}, nil
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

func TestTracesAreOffByDefault(t *testing.T) {
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
