package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds the wait for conditions that should hold at once.
const patience = 60 * time.Second

// startNATS runs a NATS server with JetStream and all streams. With port -1 it uses a free port.
func startNATS(t *testing.T, port int, change func(*natsserver.Options)) *natsserver.Server {
	t.Helper()
	options := &natsserver.Options{ServerName: "test", Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: storeDir(t), NoSigs: true, NoLog: true}
	if change != nil {
		change(options)
	}
	return runNATS(t, options)
}

// storeDir returns the directory of a server with all streams, as after a start of the watcher.
func storeDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := runNATS(t, &natsserver.Options{DontListen: true, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	if err := topology.EnsureStreams(t.Context(), jetStream(t, s), 1); err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	s.WaitForShutdown()
	return dir
}

func jetStream(t *testing.T, s *natsserver.Server) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func runNATS(t *testing.T, options *natsserver.Options) *natsserver.Server {
	t.Helper()
	s, err := natsserver.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("NATS does not start")
	}
	return s
}

func freePort(t *testing.T) int {
	t.Helper()
	l := listener(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func listener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// runningService is a running service.
type runningService struct {
	url string
	log *concurrentLog
	// stop ends the service and returns its error. ended only waits for the end.
	stop  func() error
	ended func() error
}

// runService runs a service with a NATS server. The service never calls the API server.
func runService(t *testing.T, natsURL string, build BuildFunc) *runningService {
	t.Helper()
	cfg := Defaults()
	cfg.NATS.URL = natsURL
	return runServiceWith(t, cfg, build)
}

func runServiceWith(t *testing.T, cfg Config, build BuildFunc) *runningService {
	t.Helper()
	return runServiceAs(t, "test-sync", cfg, build)
}

func runServiceAs(t *testing.T, name string, cfg Config, build BuildFunc) *runningService {
	t.Helper()
	log, l := &concurrentLog{}, listener(t)
	cfg.RPC.Auth = rpc.AuthNone
	cfg.Embed.Log, cfg.Embed.Listener, cfg.Embed.Kube = log.logger(), l, &rest.Config{Host: "https://127.0.0.1:1"}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- Run(ctx, name, cfg, build) }()
	ended := sync.OnceValue(func() error {
		select {
		case err := <-ran:
			return err
		case <-time.After(patience):
			return errors.New("the service does not end")
		}
	})
	stop := func() error {
		cancel()
		return ended()
	}
	t.Cleanup(func() {
		_ = stop() // tests that need the error have called stop before
		http.DefaultClient.CloseIdleConnections()
	})
	return &runningService{url: "http://" + l.Addr().String(), log: log, stop: stop, ended: ended}
}

// get returns the status and the text of a probe, or 0 without an answer.
func (tr *runningService) get(path string) (int, string) {
	response, err := http.Get(tr.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, strings.TrimSpace(string(body))
}

func (tr *runningService) mustBecomeReady(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		if status, text := tr.get("/readyz"); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, text)
		}
		return nil
	})
}

// eventually polls until the check returns no error.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(5 * time.Millisecond)
	}
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

// stepRecorder records steps in order.
type stepRecorder struct {
	mu    sync.Mutex
	steps []string
}

func (s *stepRecorder) add(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step)
}

func (s *stepRecorder) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.steps, ", ")
}

// waitingTask is a task that only waits for its end.
func waitingTask(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func nothing(context.Context, *Runtime) (App, error) {
	return App{Tasks: []func(context.Context) error{waitingTask}}, nil
}
