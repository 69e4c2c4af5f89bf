package embedded

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func startOpenFGA(t *testing.T, cfg OpenFGAConfig) (*OpenFGAServer, openfgav1.OpenFGAServiceClient) {
	t.Helper()
	o, err := StartOpenFGA(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Stop)
	conn, err := grpc.NewClient(o.GRPCTarget(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return o, openfgav1.NewOpenFGAServiceClient(conn)
}

func TestOpenFGAKeepsStoresAcrossRestart(t *testing.T) {
	cfg := OpenFGAConfig{File: filepath.Join(t.TempDir(), "openfga.db")}
	first, client := startOpenFGA(t, cfg)
	made, err := client.CreateStore(t.Context(), &openfgav1.CreateStoreRequest{Name: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	first.Stop()
	if info, err := os.Stat(cfg.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v; want a file that others cannot read", info, err)
	}

	cfg.GRPCPort = first.GRPCPort()
	_, client = startOpenFGA(t, cfg)
	if got, err := client.GetStore(t.Context(), &openfgav1.GetStoreRequest{StoreId: made.GetId()}); err != nil || got.GetName() != "kept" {
		t.Errorf("got %v, %v; want the store", got, err)
	}
}

func TestOpenFGADeletesStoreDuringOtherWrites(t *testing.T) {
	file := filepath.Join(t.TempDir(), "openfga.db")
	_, client := startOpenFGA(t, OpenFGAConfig{File: file, UnsafeNoFsync: true})
	made, err := client.CreateStore(t.Context(), &openfgav1.CreateStoreRequest{Name: "gone"})
	if err != nil {
		t.Fatal(err)
	}
	database, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	database.SetMaxOpenConns(1) // Both statements use one connection.
	if _, err := database.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	deleted := make(chan error, 1)
	go func() {
		_, err := client.DeleteStore(t.Context(), &openfgav1.DeleteStoreRequest{StoreId: made.GetId()})
		deleted <- err
	}()
	select {
	case err := <-deleted:
		t.Fatalf("while another writes: %v", err)
	case <-time.After(300 * time.Millisecond): // Without busy_timeout, the server gives up after a third of this time.
	}
	if _, err := database.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-deleted; err != nil {
		t.Error(err)
	}
}

func TestOpenFGARunsSeveralServersInOneProcess(t *testing.T) {
	for range 3 {
		t.Run("server", func(t *testing.T) {
			t.Parallel()
			_, client := startOpenFGA(t, OpenFGAConfig{File: filepath.Join(t.TempDir(), "openfga.db"), UnsafeNoFsync: true})
			if _, err := client.CreateStore(t.Context(), &openfgav1.CreateStoreRequest{Name: "own"}); err != nil {
				t.Fatal(err)
			}
			list, err := client.ListStores(t.Context(), &openfgav1.ListStoresRequest{})
			if err != nil || len(list.GetStores()) != 1 {
				t.Errorf("got %v, %v; want its own store only", list, err)
			}
		})
	}
}

func TestOpenFGAServesHTTPWithOwnErrorCodes(t *testing.T) {
	o, _ := startOpenFGA(t, OpenFGAConfig{HTTP: true})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(method, path, body string) (int, map[string]any) {
		request, err := http.NewRequestWithContext(t.Context(), method, o.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		var answer map[string]any
		if err := json.Unmarshal(data, &answer); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		return response.StatusCode, answer
	}
	if status, answer := ask(http.MethodPost, "/stores", `{"name": "by-http"}`); status != http.StatusCreated || answer["name"] != "by-http" {
		t.Errorf("got %d %v; want the store", status, answer)
	}
	if status, answer := ask(http.MethodGet, "/stores/01ARZ3NDEKTSV4RRFFQ69G5FAV", ""); status != http.StatusNotFound || answer["code"] != "store_id_not_found" {
		t.Errorf("got %d %v; want not found", status, answer)
	}
}

func TestOpenFGALimitsAreConfigurable(t *testing.T) {
	_, client := startOpenFGA(t, OpenFGAConfig{MaxTypes: 150})
	store, err := client.CreateStore(t.Context(), &openfgav1.CreateStoreRequest{Name: "large"})
	if err != nil {
		t.Fatal(err)
	}
	for types, fits := range map[int]bool{101: true, 150: true, 151: false} {
		request := &openfgav1.WriteAuthorizationModelRequest{StoreId: store.GetId(), SchemaVersion: "1.1"}
		for i := range types {
			request.TypeDefinitions = append(request.TypeDefinitions, &openfgav1.TypeDefinition{Type: strings.Repeat("t", i+1)})
		}
		if _, err := client.WriteAuthorizationModel(t.Context(), request); (err == nil) != fits {
			t.Errorf("%d types: %v; want it to fit: %v", types, err, fits)
		}
	}
}

func TestOpenFGAKeepsGlobalTracerProvider(t *testing.T) {
	before := otel.GetTracerProvider()
	defer otel.SetTracerProvider(before)
	ours := trace.NewTracerProvider()
	otel.SetTracerProvider(ours)
	startOpenFGA(t, OpenFGAConfig{})
	if otel.GetTracerProvider() != ours {
		t.Error("the tracer provider was replaced")
	}
}

func TestOpenFGANamesInvalidDatabasePath(t *testing.T) {
	for _, file := range []string{"/dev/null/openfga.db", filepath.Join(t.TempDir(), "what?.db")} {
		if _, err := StartOpenFGA(OpenFGAConfig{File: file}); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("got %v; want %s", err, file)
		}
	}
}

func TestOpenFGALogsWarningsThroughSlog(t *testing.T) {
	var seen recorder
	log := newOpenFGALogger(slog.New(&seen))
	log.Info("every request")
	log.With(zap.String("store", "s-1")).WarnWithContext(context.Background(), "slow", zap.Int("attempt", 2))
	log.Error("broken")
	if got := seen.levels(); len(got) != 2 || got[0] != slog.LevelWarn || got[1] != slog.LevelError {
		t.Fatalf("logged at %v; want a warning and an error", got)
	}
	attributes := map[string]any{}
	seen.seen[0].Attrs(func(a slog.Attr) bool {
		attributes[a.Key] = a.Value.Any()
		return true
	})
	if attributes["text"] != "slow" || attributes["attempt"] != int64(2) {
		t.Errorf("got %v; want the text and the fields", attributes)
	}
}
