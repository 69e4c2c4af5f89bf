package rpc

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	"github.com/entail-dev/entail/services/internal/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStoreService serves the stores that its function returns.
type fakeStoreService struct {
	storev1connect.UnimplementedStoreServiceHandler

	get func(context.Context, *storev1.GetStoreRequest) (*storev1.GetStoreResponse, error)
}

func (s fakeStoreService) GetStore(ctx context.Context, request *storev1.GetStoreRequest) (*storev1.GetStoreResponse, error) {
	if s.get == nil {
		return &storev1.GetStoreResponse{Store: &storev1.Store{Name: request.GetName()}}, nil
	}
	return s.get(ctx, request)
}

func (fakeStoreService) ListStores(context.Context, *storev1.ListStoresRequest) (*storev1.ListStoresResponse, error) {
	return &storev1.ListStoresResponse{}, nil
}

func (fakeStoreService) GetModel(context.Context, *storev1.GetModelRequest) (*storev1.GetModelResponse, error) {
	return &storev1.GetModelResponse{}, nil
}

func (s fakeStoreService) handler() Handler {
	stores := event.GroupResource{Group: "core.platform-mesh.io", Resource: "stores"}
	return NewHandler[storev1connect.StoreServiceHandler](storev1connect.StoreServiceName, storev1connect.NewStoreServiceHandler, s, map[string]AccessRule{
		storev1connect.StoreServiceListStoresProcedure:   RequireVerb("list", stores),
		storev1connect.StoreServiceGetStoreProcedure:     RequireVerbOnName("get", stores, (*storev1.GetStoreRequest).GetName),
		storev1connect.StoreServiceGetModelProcedure:     RequireVerbOnName("get", stores, (*storev1.GetModelRequest).GetName),
		storev1connect.StoreServicePreviewModelProcedure: RequireVerbOnName("get", stores, (*storev1.PreviewModelRequest).GetName),
		storev1connect.StoreServiceDiffModelProcedure:    RequireVerbOnName("get", stores, (*storev1.DiffModelRequest).GetName),
	})
}

// concurrentLog is a log that tests can read while it is written.
type concurrentLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *concurrentLog) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *concurrentLog) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

func (j *concurrentLog) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// runningServer is a running server on loopback.
type runningServer struct {
	*Server
	log    *concurrentLog
	url    string
	client *http.Client
	stop   func() error // waits until the server has stopped
}

// serve runs a server with the usual settings and the changes of the test.
func serve(t *testing.T, change func(*Config), handlers ...Handler) *runningServer {
	t.Helper()
	log := &concurrentLog{}
	cfg := Config{Address: "127.0.0.1:0", Auth: AuthNone, Log: log.logger(), Metrics: prometheus.NewRegistry()}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Mount(handlers...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-ran
	})
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := stop(); err != nil {
			t.Errorf("stopping the server: %v", err)
		}
	})
	return &runningServer{Server: s, log: log, url: "http://" + s.Addr().String(), client: &http.Client{Transport: transport}, stop: stop}
}

func (tr *runningServer) stores() storev1connect.StoreServiceClient {
	return storev1connect.NewStoreServiceClient(tr.client, tr.url)
}

func loopbackListener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (j *concurrentLog) mustHold(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(j.String(), text) {
		t.Errorf("log lacks %q: %s", text, j)
	}
}

func (j *concurrentLog) mustNotHold(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(j.String(), text) {
		t.Errorf("log holds %q: %s", text, j)
	}
}
