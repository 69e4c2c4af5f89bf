package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestShutdownStopsPartsInOrder(t *testing.T) {
	var steps stepRecorder
	bus := startNATS(t, -1, nil)
	heard := make(chan string, 1)
	s := &slowStoreService{entered: make(chan struct{}), finish: make(chan struct{}), steps: &steps}
	var tr *runningService
	stopping := make(chan struct{})
	tr = runService(t, bus.ClientURL(), func(_ context.Context, rt *Runtime) (App, error) {
		task := func(ctx context.Context) error {
			<-ctx.Done()
			status, text := tr.get("/readyz")
			steps.add(fmt.Sprintf("task stops while readyz is %d %s", status, text))
			close(stopping)
			return ctx.Err()
		}
		closing := func() error {
			steps.add("closed")
			return rt.NATS.Publish("last.words", []byte("of "+rt.Name))
		}
		return App{Tasks: []func(context.Context) error{task}, Close: closing, Handlers: []rpc.Handler{s.handler()}}, nil
	})
	listenTo(t, bus.ClientURL(), heard)
	tr.mustBecomeReady(t)
	answer := make(chan error, 1)
	go func() {
		client := storev1connect.NewStoreServiceClient(http.DefaultClient, tr.url)
		_, err := client.ListStores(context.WithoutCancel(t.Context()), &storev1.ListStoresRequest{})
		answer <- err
	}()
	<-s.entered
	stopped := make(chan error, 1)
	go func() { stopped <- tr.stop() }()
	<-stopping
	untilRefused(t, tr.url)
	close(s.finish)
	if err := <-answer; err != nil {
		t.Errorf("the running call: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("the service: %v", err)
	}
	if want := "task stops while readyz is 503 stopping, call ends, closed"; steps.String() != want {
		t.Errorf("steps: %s\n want: %s", &steps, want)
	}
	if got := <-heard; got != "of test-sync" {
		t.Errorf("got message %q", got)
	}
}

// listenTo subscribes to the message that a service publishes at its end.
func listenTo(t *testing.T, url string, heard chan string) {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if _, err := conn.Subscribe("last.words", func(m *nats.Msg) { heard <- string(m.Data) }); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
}

func untilRefused(t *testing.T, url string) {
	t.Helper()
	eventually(t, func() error {
		if conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
			return errors.Join(errors.New("the server still takes connections"), conn.Close())
		}
		return nil
	})
}

// slowStoreService lists stores only after finish is closed.
type slowStoreService struct {
	storev1connect.UnimplementedStoreServiceHandler
	entered, finish chan struct{}
	steps           *stepRecorder
}

func (s *slowStoreService) ListStores(context.Context, *storev1.ListStoresRequest) (*storev1.ListStoresResponse, error) {
	close(s.entered)
	<-s.finish
	s.steps.add("call ends")
	return &storev1.ListStoresResponse{}, nil
}

func (s *slowStoreService) handler() rpc.Handler {
	read := rpc.RequireVerb("get", event.GroupResource{Resource: "stores"})
	return rpc.NewHandler[storev1connect.StoreServiceHandler](storev1connect.StoreServiceName, storev1connect.NewStoreServiceHandler, s, map[string]rpc.AccessRule{
		storev1connect.StoreServiceListStoresProcedure:   read,
		storev1connect.StoreServiceGetStoreProcedure:     read,
		storev1connect.StoreServiceGetModelProcedure:     read,
		storev1connect.StoreServicePreviewModelProcedure: read,
		storev1connect.StoreServiceDiffModelProcedure:    read,
	})
}

func TestFailingTaskEndsService(t *testing.T) {
	bus := startNATS(t, -1, nil)
	broken := errors.New("broken")
	tests := map[string]struct {
		build BuildFunc
		want  string
	}{
		"build": {func(context.Context, *Runtime) (App, error) { return App{}, broken }, "creating the service: broken"},
		"task, told once": {func(context.Context, *Runtime) (App, error) {
			return App{Tasks: []func(context.Context) error{waitingTask, func(context.Context) error { return broken }}}, nil
		}, "broken"},
		"task that just ends": {func(context.Context, *Runtime) (App, error) {
			return App{Tasks: []func(context.Context) error{func(context.Context) error { return nil }}}, nil
		}, "a task ended before it was stopped"},
		"handler": {func(context.Context, *Runtime) (App, error) {
			return App{Handlers: []rpc.Handler{rpc.NewHandler[storev1connect.StoreServiceHandler](
				storev1connect.StoreServiceName, storev1connect.NewStoreServiceHandler, &slowStoreService{}, nil)}}, nil
		}, "mounting entail.store.v1.StoreService: procedure /entail.store.v1.StoreService/DiffModel has no access rule\n" +
			"procedure /entail.store.v1.StoreService/GetModel has no access rule\nprocedure /entail.store.v1.StoreService/GetStore has no access rule\n" +
			"procedure /entail.store.v1.StoreService/ListStores has no access rule\nprocedure /entail.store.v1.StoreService/PreviewModel has no access rule"},
		"bus closed for good": {func(_ context.Context, rt *Runtime) (App, error) {
			return App{Tasks: []func(context.Context) error{func(ctx context.Context) error {
				rt.NATS.Close()
				return waitingTask(ctx)
			}}}, nil
		}, "the connection to NATS is closed for good"},
		"close": {func(context.Context, *Runtime) (App, error) {
			return App{
				Tasks: []func(context.Context) error{func(context.Context) error { return broken }},
				Close: func() error { return errors.New("cannot close") },
			}, nil
		}, "broken\ncannot close"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := runService(t, bus.ClientURL(), test.build).ended(); err == nil || err.Error() != test.want {
				t.Fatalf("ended with %v, want %s", err, test.want)
			}
		})
	}
}

func TestReadinessRequiresNATSAndChecks(t *testing.T) {
	bus := startNATS(t, -1, nil)
	missing := make(chan error, 1)
	missing <- errors.New("stores are missing")
	tr := runService(t, bus.ClientURL(), func(context.Context, *Runtime) (App, error) {
		check := ReadinessCheck{Name: "view", Err: func() error {
			select {
			case err := <-missing:
				missing <- err
				return err
			default:
				return nil
			}
		}}
		return App{Tasks: []func(context.Context) error{waitingTask}, Ready: []ReadinessCheck{check}}, nil
	})
	eventually(t, tr.readyzIs("view: stores are missing"))
	<-missing
	tr.mustBecomeReady(t)
	bus.Shutdown()
	eventually(t, tr.readyzIs("nats: not connected"))
	if status, text := tr.get("/healthz"); status != http.StatusOK {
		t.Errorf("healthz is %d %s while the bus is away", status, text)
	}
}

func (tr *runningService) readyzIs(want string) func() error {
	return func() error {
		if status, text := tr.get("/readyz"); status != http.StatusServiceUnavailable || text != want {
			return fmt.Errorf("readyz is %d %s, want 503 %s", status, text, want)
		}
		return nil
	}
}

func TestServiceStartsWithMetrics(t *testing.T) {
	bus := startNATS(t, -1, nil)
	var one, two *Runtime
	keep := func(to **Runtime) BuildFunc {
		return func(ctx context.Context, rt *Runtime) (App, error) {
			*to = rt
			return nothing(ctx, rt)
		}
	}
	first, second := runService(t, bus.ClientURL(), keep(&one)), runService(t, bus.ClientURL(), keep(&two))
	first.mustBecomeReady(t)
	second.mustBecomeReady(t)
	for _, name := range []string{topology.Changes, topology.Sync, topology.Results, topology.DeadLetters} {
		if _, err := one.JS.Stream(t.Context(), name); err != nil {
			t.Errorf("stream %s: %v", name, err)
		}
	}
	if one.Metrics == two.Metrics || one.NATS == two.NATS || one.NATS.Opts.Name != "entail-test-sync" || one.Kube.UserAgent != "entail-test-sync" {
		t.Error("two services share parts or are not named")
	}
	if _, text := first.get("/metrics"); !strings.Contains(text, "go_goroutines") || !strings.Contains(text, "process_open_fds") {
		t.Errorf("metrics lack those of the process: %.300s", text)
	}
	if err := errors.Join(first.stop(), second.stop()); err != nil {
		t.Error(err)
	}
	for _, tr := range []*runningService{first, second} {
		if log := tr.log.String(); !strings.Contains(log, `"service":"test-sync","config":{"cluster":"local"`) {
			t.Errorf("log lacks the settings: %s", log)
		}
	}
}

func TestInvalidSettingsPreventStart(t *testing.T) {
	cfg := Defaults()
	cfg.Resync = 0
	if err := runServiceWith(t, cfg, nothing).ended(); err == nil || !strings.Contains(err.Error(), "settings of test-sync: --resync 0s") {
		t.Fatalf("ended with %v", err)
	}
}
