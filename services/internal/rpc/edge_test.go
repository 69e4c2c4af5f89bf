package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/services/internal/fault"
)

func TestErrorsHideCausesFromCallers(t *testing.T) {
	cause := errors.New("dial 10.1.2.3: secret cause")
	tests := map[string]struct {
		give   error
		code   connect.Code
		text   string // what the caller reads
		logged bool   // the cause is in the log above debug
	}{
		"unknown":     {cause, connect.CodeInternal, errInternal.Error(), true},
		"terminal":    {fault.Terminal(cause), connect.CodeInternal, errInternal.Error(), true},
		"unavailable": {fmt.Errorf("reading: %w", fault.Unavailable(cause)), connect.CodeUnavailable, errUnavailable.Error(), true},
		"slow system": {fmt.Errorf("reading: %w: %w", cause, context.DeadlineExceeded), connect.CodeUnavailable, errUnavailable.Error(), true},
		"not found":   {fmt.Errorf("get: %w", NotFoundError("store %q does not exist", "demo")), connect.CodeNotFound, `store "demo" does not exist`, false},
		"invalid":     {InvalidError("say it otherwise"), connect.CodeInvalidArgument, "say it otherwise", false},
		"incomplete": {
			IncompleteError(errors.New("stores are missing")), connect.CodeUnavailable,
			"the service has not read everything yet; try again: stores are missing", false,
		},
		"from afar": {wireError(t), connect.CodeInternal, errInternal.Error(), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tr := serve(t, nil, fakeStoreService{get: func(context.Context, *storev1.GetStoreRequest) (*storev1.GetStoreResponse, error) {
				return nil, test.give
			}}.handler())
			_, err := tr.stores().GetStore(t.Context(), &storev1.GetStoreRequest{Name: "demo"})
			answer, ok := errors.AsType[*connect.Error](err)
			if !ok || answer.Code() != test.code || answer.Message() != test.text {
				t.Fatalf("caller reads %v, want %v: %s", err, test.code, test.text)
			}
			loud := strings.Contains(tr.log.String(), `"level":"ERROR"`) || strings.Contains(tr.log.String(), `"level":"WARN"`)
			if loud != test.logged || !strings.Contains(tr.log.String(), "call failed") {
				t.Fatalf("log is %s", tr.log)
			}
		})
	}
	if IncompleteError(nil) != nil {
		t.Error("a complete view is an error")
	}
}

// wireError returns an error that a client received from another server.
func wireError(t *testing.T) error {
	t.Helper()
	other := serve(t, nil, fakeStoreService{get: func(context.Context, *storev1.GetStoreRequest) (*storev1.GetStoreResponse, error) {
		return nil, NotFoundError("on another server")
	}}.handler())
	_, err := other.stores().GetStore(t.Context(), &storev1.GetStoreRequest{Name: "demo"})
	if err == nil {
		t.Fatal("the other server answered")
	}
	return err
}

func TestPanicIsInternalErrorAndLogged(t *testing.T) {
	metrics := prometheus.NewRegistry()
	tr := serve(t, func(c *Config) { c.Metrics = metrics }, fakeStoreService{get: func(context.Context, *storev1.GetStoreRequest) (*storev1.GetStoreResponse, error) {
		panic("at the disco") //nolint:forbidigo // It is what the test is about.
	}}.handler())
	_, err := tr.stores().GetStore(t.Context(), &storev1.GetStoreRequest{Name: "demo"})
	if connect.CodeOf(err) != connect.CodeInternal || strings.Contains(err.Error(), "disco") {
		t.Fatalf("caller reads %v", err)
	}
	if log := tr.log.String(); !strings.Contains(log, "panic: at the disco") || !strings.Contains(log, "edge_test.go") {
		t.Fatalf("log is %s", log)
	}
	if _, err := tr.stores().ListStores(t.Context(), &storev1.ListStoresRequest{}); err != nil {
		t.Fatalf("the next call: %v", err)
	}
	families, err := metrics.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 2 {
		t.Fatalf("metrics are %v, %v; want one series of internal and one of ok", families, err)
	}
}

func TestCallHasDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := newBoundaryInterceptor((&concurrentLog{}).logger(), prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		call := e.WrapUnary(func(ctx context.Context, _ connect.AnyRequest) (connect.AnyResponse, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("waiting: %w", ctx.Err())
		})
		_, err = call(t.Context(), connect.NewRequest(&storev1.GetStoreRequest{}))
		if connect.CodeOf(err) != connect.CodeDeadlineExceeded || !strings.Contains(err.Error(), "took too long") {
			t.Fatalf("caller reads %v", err)
		}
	})
}

func TestRequestsAreValidatedBeforeService(t *testing.T) {
	tr := serve(t, nil, fakeStoreService{get: func(context.Context, *storev1.GetStoreRequest) (*storev1.GetStoreResponse, error) {
		t.Error("the service was called")
		return &storev1.GetStoreResponse{}, nil
	}}.handler())
	_, err := tr.stores().GetStore(t.Context(), &storev1.GetStoreRequest{Name: ""})
	if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "name") {
		t.Fatalf("caller reads %v", err)
	}
}

func TestBodiesAreBoundedWhenCompressed(t *testing.T) {
	large := &storev1.GetStoreRequest{Name: strings.Repeat("a", 2*maxBody)}
	tr := serve(t, nil, fakeStoreService{}.handler())
	tests := map[string]connect.ClientOption{
		"plain": connect.WithClientOptions(), "compressed": connect.WithSendGzip(), "gRPC-Web": connect.WithGRPCWeb(),
	}
	for name, option := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := connect.NewClient[storev1.GetStoreRequest, storev1.GetStoreResponse](
				tr.client, tr.url+"/entail.store.v1.StoreService/GetStore", option).CallUnary(t.Context(), connect.NewRequest(large))
			if connect.CodeOf(err) != connect.CodeResourceExhausted {
				t.Fatalf("caller reads %v", err)
			}
		})
	}
}

func TestHeadersAreBounded(t *testing.T) {
	tr := serve(t, nil)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tr.url+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Long", strings.Repeat("a", 2*maxHeader))
	response, err := tr.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Fatalf("status %s", response.Status)
	}
}
