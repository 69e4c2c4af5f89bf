package reflector

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// BenchmarkPublishWarmList measures the time from the start to the snapshot marker: a list over HTTP, decoding, and
// publication with acknowledgement to a stream on disk. The API server does its own work before.
func BenchmarkPublishWarmList(b *testing.B) {
	const objects = 20_000
	api := apiServer(b, objects)
	var published int
	for b.Loop() {
		b.StopTimer()
		bus := newTestNATS(b)
		from, err := source.New(&rest.Config{Host: api.URL}, "local")
		if err != nil {
			b.Fatal(err)
		}
		cfg := bus.config(from)
		cfg.Workers, cfg.CheckInterval = 64, time.Second
		b.StartTimer()
		stop := bus.run(cfg)
		eventually(b, func() error {
			m, err := bus.marker()
			if err == nil && m.GetCount() != objects {
				err = errors.New("marker of another number")
			}
			return err
		})
		b.StopTimer()
		stop()
		published += objects
		b.StartTimer()
	}
	b.ReportMetric(float64(published)/b.Elapsed().Seconds(), "changes/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSweepUnchanged measures a restart with nothing to publish.
func BenchmarkSweepUnchanged(b *testing.B) {
	const objects = 20_000
	api := apiServer(b, objects)
	bus := newTestNATS(b)
	from, err := source.New(&rest.Config{Host: api.URL}, "local")
	if err != nil {
		b.Fatal(err)
	}
	complete := func(since time.Time) {
		eventually(b, func() error {
			m, err := bus.marker()
			if err == nil && m.GetWrittenAt().AsTime().Before(since) {
				err = errors.New("marker of the run before")
			}
			return err
		})
	}
	began := time.Now()
	stop := bus.run(bus.config(from))
	complete(began)
	stop()
	for b.Loop() {
		began := time.Now()
		stop := bus.run(bus.config(from))
		complete(began)
		b.StopTimer()
		stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(objects*b.N)/b.Elapsed().Seconds(), "objects/s")
	b.ReportMetric(0, "ns/op")
}

func TestMemoryPerObjectIsBounded(t *testing.T) {
	const objects, enough = 100_000, 500
	f := newKindReflector(&reflector{cfg: Config{Metrics: NewMetrics(prometheus.NewRegistry())}}, kinds.Stores(), nil)
	before := heap()
	for i := range objects {
		f.recordPublishedEntry(publish.Entry{
			Key: newFakeSource().key(fmt.Sprint("a-name-of-common-length-", i)), Sequence: uint64(i + 1),
			Version: fmt.Sprint(1_000_000 + i), ContentHash: fmt.Sprintf("%022d", i),
		})
	}
	each := (heap() - before) / objects
	t.Logf("%d bytes", each)
	if each > enough {
		t.Errorf("an object takes %d bytes, want less than %d", each, enough)
	}
	runtime.KeepAlive(f)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// apiServer serves a list of Stores as an API server does, and watches without events.
func apiServer(b *testing.B, objects int) *httptest.Server {
	b.Helper()
	const page = 100
	var pages [][]byte
	for from := 0; from < objects; from += page {
		var body bytes.Buffer
		next := ""
		if from+page < objects {
			next = strconv.Itoa(from/page + 1)
		}
		fmt.Fprintf(&body, `{"apiVersion":"core.platform-mesh.io/v1alpha1","kind":"StoreList","metadata":{"resourceVersion":"1000000","continue":%q},"items":[`, next)
		for i := from; i < min(from+page, objects); i++ {
			if i > from {
				body.WriteByte(',')
			}
			store(&body, i)
		}
		body.WriteString("]}")
		pages = append(pages, body.Bytes())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/kube-system", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"3f1e5a0c-0000-4000-8000-000000000000"}}`)
	})
	mux.HandleFunc("GET /apis/core.platform-mesh.io/v1alpha1/stores", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		number, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(pages[number])
	})
	server := httptest.NewServer(mux)
	b.Cleanup(server.Close)
	b.Cleanup(server.CloseClientConnections)
	return server
}

// store writes a Store of usual size as the API server sends it: 2.5 kB with managed fields.
func store(body *bytes.Buffer, i int) {
	module := strings.Repeat("type document\\n  relations\\n    define viewer: [user]\\n", 6)
	var tuples, fields []string
	for j := range 8 {
		tuples = append(tuples, fmt.Sprintf(`{"object":"document:%d-%d","relation":"viewer","user":"user:%d"}`, i, j, j))
		fields = append(fields, fmt.Sprintf(`"f:field%d":{"f:inner":{},"k:{\"name\":\"%d\"}":{}}`, j, j))
	}
	fmt.Fprintf(body, `{"apiVersion":"core.platform-mesh.io/v1alpha1","kind":"Store","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z",`+
		`"finalizers":["core.platform-mesh.io/fga-store","core.platform-mesh.io/fga-tuples"],"generation":3,"labels":{"team":"t%d"},`+
		`"managedFields":[{"apiVersion":"core.platform-mesh.io/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{%s}},"manager":"kubectl","operation":"Apply"}],`+
		`"name":"store-%d","resourceVersion":"%d","uid":"00000000-0000-4000-8000-%012d"},"spec":{"coreModule":"module core\n%s","tuples":[%s]},`+
		`"status":{"storeId":"01JXXXXXXXXXXXXXXXXXXXXXXX","managedTuples":[%s],"observedGeneration":3}}`,
		i%10, strings.Join(fields, ","), i, 1000+i, i, module, strings.Join(tuples, ","), strings.Join(tuples, ","))
}
