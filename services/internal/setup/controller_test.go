package setup_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/leader"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConfigBindsFlagsAndValidates(t *testing.T) {
	cfg := setup.Defaults()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	cfg.BindFlags(fs)
	if err := fs.Parse([]string{"--workers=7", "--resync=1m"}); err != nil || cfg.Workers != 7 || cfg.Resync != time.Minute || cfg.Validate() != nil {
		t.Errorf("%+v, %v, %v", cfg, err, cfg.Validate())
	}
	for _, workers := range []int{0, -1, 1 << 20} {
		if cfg.Workers = workers; cfg.Validate() == nil || !strings.Contains(cfg.Validate().Error(), "use 1 to 1024") {
			t.Errorf("%d workers: %v", workers, cfg.Validate())
		}
	}
}

func runtime(t *testing.T) *service.Runtime {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("server does not start")
	}
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := topology.EnsureStreams(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	return &service.Runtime{
		Name: topology.TupleSync, Log: slog.New(slog.DiscardHandler), NATS: conn, JS: js,
		Kube: &rest.Config{Host: "http://127.0.0.1:1"}, Metrics: prometheus.NewRegistry(),
	}
}

// idleReconciler is a reconciler without work.
type idleReconciler struct{}

func (idleReconciler) AffectedKeys(event.Key) []string                              { return nil }
func (idleReconciler) Reconcile(context.Context, *controller.Request[string]) error { return nil }

func TestAppFeedsInformerAndClosesClients(t *testing.T) {
	rt := runtime(t)
	openFGA := fga.Config{Target: "127.0.0.1:1"}
	parts, err := setup.BuildParts(rt, setup.Defaults(), setup.RequiredBackends{OpenFGA: &openFGA, OneCluster: true})
	if err != nil {
		t.Fatal(err)
	}
	informer.RegisterLister[struct{}](parts.View, kinds.Stores(), nil)
	app := setup.NewApp(parts, idleReconciler{})
	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	for _, task := range app.Tasks {
		tasks.Go(func() {
			if err := task(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	if err := app.Ready[0].Err(); !errors.Is(err, informer.ErrIncomplete) || app.Ready[0].Name != "view" {
		t.Errorf("ready without a snapshot: %v", err)
	}
	wantUnready(t, app, "consumer: not bound to the durable", "openfga: has not answered yet")
	if !slices.ContainsFunc(app.Ready, func(c service.ReadinessCheck) bool { return c.Name == "turn" && c.Err() == nil }) {
		t.Error("no passing readiness check \"turn\"")
	}
	cancel()
	tasks.Wait()
	if err := app.Close(); err != nil {
		t.Error(err)
	}
}

func TestWritesRequireTerm(t *testing.T) {
	rt := runtime(t)
	reached := atomic.Int32{}
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer backend.Close()
	rt.Kube = &rest.Config{Host: backend.URL}
	parts, err := setup.BuildParts(rt, setup.Defaults(), setup.RequiredBackends{OpenFGA: &fga.Config{Target: backend.URL}})
	if err != nil {
		t.Fatal(err)
	}
	app := setup.NewApp(parts, idleReconciler{})
	defer func() {
		if err := app.Close(); err != nil {
			t.Error(err)
		}
	}()
	store := event.Change{Key: event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "a"}, UID: "u", ResourceVersion: "1"}
	_, created := parts.OpenFGA.CreateStore(t.Context(), "test")
	for what, err := range map[string]error{"OpenFGA": created, "the API server": parts.Kube.Delete(t.Context(), kinds.Stores(), store)} {
		if err == nil || !strings.Contains(err.Error(), leader.ErrNotLeader.Error()) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("%d requests left", n)
	}
}

// wantUnready fails the test unless each readiness check fails with its expected reason.
func wantUnready(t *testing.T, app service.App, want ...string) {
	t.Helper()
	var got []string
	for _, check := range app.Ready[1:] {
		got = append(got, fmt.Sprintf("%s: %v", check.Name, check.Err()))
	}
	for _, reason := range want {
		if !slices.ContainsFunc(got, func(is string) bool { return strings.HasPrefix(is, reason) }) {
			t.Errorf("not ready for %q, want %q", got, reason)
		}
	}
}

func TestBacklogIsExportedAsMetrics(t *testing.T) {
	rt := runtime(t)
	parts, err := setup.BuildParts(rt, setup.Defaults(), setup.RequiredBackends{})
	if err != nil {
		t.Fatal(err)
	}
	informer.RegisterLister[struct{}](parts.View, kinds.Stores(), nil)
	durable, _ := topology.FindService(topology.TupleSync)
	consumer, err := topology.EnsureConsumer(t.Context(), rt.JS, durable, topology.DefaultTakeoverBounds())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		store := event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: fmt.Sprint(time.Now().UnixNano())}
		if _, err := rt.JS.Publish(t.Context(), topology.ChangeSubject(store), nil); err != nil {
			t.Fatal(err)
		}
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(1), jetstream.PullPriorityGroup(topology.PriorityGroup))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := messages.Next(); err != nil {
		t.Fatal(err)
	}
	messages.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	app := setup.NewApp(parts, idleReconciler{})
	tasks.Go(func() { _ = app.Tasks[len(app.Tasks)-1](ctx) })
	testenv.Eventually(t, time.Minute, func() error {
		families, err := rt.Metrics.Gather()
		if err != nil {
			return err
		}
		got := map[string]float64{}
		for _, family := range families {
			got[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue()
		}
		pending, unsettled := got["entail_messages_pending"], got["entail_messages_unsettled"]
		if _, told := got["entail_messages_redelivering"]; !told || unsettled < 1 || pending+unsettled != 3 {
			return fmt.Errorf("metrics are %v", families)
		}
		return nil
	})
}

func TestBuildPartsRefusesInvalidSettings(t *testing.T) {
	rt := runtime(t)
	if _, err := setup.BuildParts(rt, setup.Defaults(), setup.RequiredBackends{OpenFGA: &fga.Config{}}); err == nil {
		t.Error("an OpenFGA without a target was taken")
	}
	parts, err := setup.BuildParts(rt, setup.Defaults(), setup.RequiredBackends{})
	if err != nil || parts.OpenFGA != nil || setup.NewApp(parts, idleReconciler{}).Close() != nil {
		t.Errorf("without OpenFGA: %v", err)
	}
}
