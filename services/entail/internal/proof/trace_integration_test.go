//go:build integration

package proof

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// traceCollector receives the exports of OpenTelemetry.
type traceCollector struct {
	mu sync.Mutex
	// traces holds the spans, with their services, by trace ID.
	traces map[string][]string
}

// startTraceCollector makes all services of this process export to a new collector.
func startTraceCollector(t *testing.T) *traceCollector {
	t.Helper()
	c := &traceCollector{traces: map[string][]string{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	return c
}

// ServeHTTP stores one export.
func (c *traceCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var export collectorv1.ExportTraceServiceRequest
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(body, &export)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range export.GetResourceSpans() {
		service := strings.TrimPrefix(attribute(resource.GetResource().GetAttributes(), "service.name"), "entail-")
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				id, path := fmt.Sprintf("%x", span.GetTraceId()), attribute(span.GetAttributes(), "url.path")
				c.traces[id] = append(c.traces[id], strings.TrimSpace(service+": "+span.GetName()+" "+path))
			}
		}
	}
}

func attribute(all []*commonv1.KeyValue, key string) string {
	for _, a := range all {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// holds returns a trace that has all of these spans.
func (c *traceCollector) holds(spans ...string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, trace := range c.traces {
		if !slices.ContainsFunc(spans, func(span string) bool { return !slices.Contains(trace, span) }) {
			return id, nil
		}
	}
	return "", fmt.Errorf("no trace has all of %q:\n%s", spans, c.text())
}

func (c *traceCollector) text() string {
	var text strings.Builder
	for _, id := range slices.Sorted(maps.Keys(c.traces)) {
		fmt.Fprintf(&text, "%s %q\n", id, c.traces[id])
	}
	return text.String()
}

// lockedLog is a log with concurrent writers.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) hold(texts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			return true
		}
	}
	return false
}

func TestChangeIsOneTraceAcrossServices(t *testing.T) {
	traces, log := startTraceCollector(t), &lockedLog{}
	s := startInProcessServices(t)
	s.around.embed.Log = slog.New(slog.NewJSONHandler(log, nil))
	for _, name := range []string{topology.Watcher, topology.StoreSync, topology.TupleSync} {
		s.start(t, name)
	}
	s.stores(t, 1) // Services that still load the stream do not continue the trace of a change.
	spec := corev1alpha1.StoreSpec{CoreModule: core}
	s.kube.Apply(t, kinds.Stores(), "traced", spec)
	status := "PATCH /apis/" + kinds.Stores().Group + "/" + kinds.Stores().Version + "/stores/traced/status"
	var model string
	testenv.Eventually(t, time.Minute, func() (err error) {
		model, err = traces.holds("watcher: publish stores."+kinds.Stores().Group, "store-sync: store-sync reconcile",
			"store-sync: openfga.v1.OpenFGAService/WriteAuthorizationModel", "store-sync: "+status)
		return err
	})
	if !log.hold(`"service":"store-sync"`, `"msg":"OpenFGA changed"`, `"trace_id":"`+model+`"`) {
		t.Errorf("no log line names trace %s", model)
	}
	// A reconciliation in progress reads the object again and may apply a later edit. Then no work is left for the
	// trace of that edit, so the test makes another edit.
	var edited time.Time
	testenv.Eventually(t, time.Minute, func() error {
		if time.Since(edited) > 5*time.Second {
			user := fmt.Sprintf("user:%d", len(spec.Tuples))
			spec.Tuples = append(spec.Tuples, corev1alpha1.Tuple{Object: "doc:1", Relation: "viewer", User: user})
			s.kube.Apply(t, kinds.Stores(), "traced", spec)
			edited = time.Now()
		}
		_, err := traces.holds("watcher: publish stores."+kinds.Stores().Group, "store-sync: store-sync reconcile",
			"tuple-sync: tuple-sync reconcile", "tuple-sync: openfga.v1.OpenFGAService/Write", "tuple-sync: "+status)
		return err
	})
}
