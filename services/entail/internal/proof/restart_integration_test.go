//go:build integration

package proof

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	crowdStores  = 1000
	crowdModules = 99
	crowd        = crowdStores * (1 + crowdModules)
)

// A service starts with 100,000 converged objects in the stream: 1,000 Stores with 99 AuthorizationModels each, and one
// tuple in every object. The service starts for the first time, then again, then as its own process, whose memory is
// measured. It has converged once it has published a result for every object.
func BenchmarkRestartWith100000Objects(b *testing.B) {
	for _, name := range []string{topology.StoreSync, topology.TupleSync} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c := newLargeStateEnv(b)
				first := c.converge(b, name, func() func() { return c.run(b, name) })
				again := c.converge(b, name, func() func() { return c.run(b, name) })
				var p *process
				alone := c.converge(b, name, func() func() { p = spawn(b, name, c.around(b, name)); return func() {} })
				b.ReportMetric(first.Seconds(), "first-s")
				b.ReportMetric(again.Seconds(), "restart-s")
				b.ReportMetric(alone.Seconds(), "process-restart-s")
				peak, settled := p.memory()
				b.ReportMetric(peak, "peak-MiB")
				b.ReportMetric(settled, "MiB")
				p.stop()
				if got := c.openFGA.Writes() + c.kube.Writes(); got != 0 {
					b.Fatalf("%d writes though everything was converged: %v %v", got, c.openFGA.WritesByOp(), c.kube.WritesByOp())
				}
			}
		})
	}
}

// largeStateEnv holds the servers with the state of 100,000 converged objects.
type largeStateEnv struct {
	bus     *testenv.NATSServer
	openFGA *testenv.OpenFGAServer
	kube    *testenv.KubeServer
	js      jetstream.JetStream
}

// newLargeStateEnv lets the services converge one Store with its modules, and publishes 1,000 copies of it.
func newLargeStateEnv(b *testing.B) *largeStateEnv {
	b.Helper()
	c := &largeStateEnv{bus: testenv.StartNATS(b), openFGA: testenv.LazyOpenFGA(b), kube: testenv.StartKube(b)}
	c.js = c.bus.JetStream(b)
	if err := topology.EnsureStreams(b.Context(), c.js, 1); err != nil {
		b.Fatal(err)
	}
	pattern := newObjectTemplate(b)
	published := 0
	for i := range crowdStores {
		published += c.publish(b, pattern, i)
	}
	if published != crowd {
		b.Fatalf("published %d objects, want %d", published, crowd)
	}
	counts := map[string]int64{corev1alpha1.Stores: crowdStores, corev1alpha1.AuthorizationModels: crowdStores * crowdModules}
	for _, kind := range kinds.ConsumedKinds() {
		c.mark(b, kind.GroupResource, counts[kind.Resource])
	}
	testenv.WriteBarriers(b, c.js, "local")
	return c
}

const patternName = "pattern"

// objectTemplate holds the objects of one converged Store, as JSON by kind and name.
type objectTemplate struct {
	objects          map[kinds.Kind]map[string]string
	storeID, modelID string
	bed              *inProcessServices
}

func newObjectTemplate(b *testing.B) *objectTemplate {
	b.Helper()
	s := startInProcessServices(b, topology.Watcher, topology.StoreSync, topology.TupleSync)
	s.kube.Apply(b, kinds.Stores(), patternName, corev1alpha1.StoreSpec{CoreModule: core, Tuples: []corev1alpha1.Tuple{tuple("core")}})
	for i := range crowdModules {
		s.kube.Apply(b, kinds.AuthorizationModels(), fmt.Sprintf("%s-%02d", patternName, i), corev1alpha1.AuthorizationModelSpec{
			StoreRef: corev1alpha1.StoreRef{Name: patternName}, Tuples: []corev1alpha1.Tuple{tuple(fmt.Sprint(i))},
			Model: fmt.Sprintf("module m%02d\nextend type doc\n  relations\n    define relation_%02d: [user]\n", i, i),
		})
	}
	p := &objectTemplate{bed: s}
	testenv.Eventually(b, time.Minute, func() error { return p.read(b) })
	return p
}

// read reads the objects, or returns an error if they have not converged.
func (p *objectTemplate) read(b *testing.B) error {
	b.Helper()
	stores, err := list[corev1alpha1.Store](b.Context(), p.bed.objects, kinds.Stores())
	if err != nil {
		return err
	}
	parts, err := list[corev1alpha1.AuthorizationModel](b.Context(), p.bed.objects, kinds.AuthorizationModels())
	if err != nil {
		return err
	}
	for name, part := range parts {
		if !ready(part.Status.Conditions, part.Generation) {
			return fmt.Errorf("authorization model %s is not Ready", name)
		}
	}
	status := stores[patternName].Status
	p.storeID, p.modelID = status.StoreID, status.AuthorizationModelID
	if !ready(status.Conditions, stores[patternName].Generation) || len(status.Modules) != 1+crowdModules || len(parts) != crowdModules {
		return fmt.Errorf("store is not at rest: %d modules", len(status.Modules))
	}
	p.objects = map[kinds.Kind]map[string]string{}
	for _, kind := range []kinds.Kind{kinds.Stores(), kinds.AuthorizationModels()} {
		p.objects[kind] = map[string]string{}
		found, err := p.bed.objects.Resource(kind.GroupVersionResource()).List(b.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, o := range found.Items {
			o.SetManagedFields(nil)
			data, err := o.MarshalJSON()
			if err != nil {
				return err
			}
			p.objects[kind][o.GetName()] = string(data)
		}
	}
	return nil
}

// publish creates the i-th copy of the pattern in OpenFGA and on the stream, and returns the number of its objects.
func (c *largeStateEnv) publish(b *testing.B, p *objectTemplate, i int) int {
	b.Helper()
	client := c.openFGA.Client(b)
	name := fmt.Sprintf("copy%03d", i)
	model, err := p.bed.openFGA.ReadLatestModel(b.Context(), p.storeID)
	if err != nil {
		b.Fatal(err)
	}
	store, err := client.CreateStore(b.Context(), name)
	if err != nil {
		b.Fatal(err)
	}
	modelID, err := client.WriteModel(b.Context(), store, model)
	if err != nil {
		b.Fatal(err)
	}
	keys := []*openfgav1.TupleKey{key("core")}
	for i := range crowdModules {
		keys = append(keys, key(fmt.Sprint(i)))
	}
	if err := client.Write(b.Context(), store, modelID, keys, nil); err != nil {
		b.Fatal(err)
	}
	published := 0
	replace := strings.NewReplacer(patternName, name, p.storeID, store, p.modelID, modelID)
	for kind, objects := range p.objects {
		for original, text := range objects {
			published++
			change := event.Change{
				Key:     event.Key{Cluster: "local", GroupResource: kind.GroupResource, Name: replace.Replace(original)},
				Version: kind.Version, Kind: kind.Kind, UID: fmt.Sprintf("%s-%d", name, published),
				ResourceVersion: fmt.Sprint(1_000_000 + i*1000 + published), Generation: 1, Epoch: "crowd", ObservedAt: time.Now(),
				Object: []byte(replace.Replace(text)),
			}
			data, err := change.Marshal()
			if err != nil {
				b.Fatal(err)
			}
			msg := &nats.Msg{Subject: topology.ChangeSubject(change.Key), Header: topology.ChangeHeaders(change), Data: data}
			if _, err := c.js.PublishMsgAsync(msg, jetstream.WithStallWait(time.Minute)); err != nil {
				b.Fatal(err)
			}
		}
	}
	<-c.js.PublishAsyncComplete()
	return published
}

func (c *largeStateEnv) mark(b *testing.B, kind event.GroupResource, count int64) {
	b.Helper()
	stream, err := c.js.Stream(b.Context(), topology.Changes)
	if err != nil {
		b.Fatal(err)
	}
	data, err := proto.Marshal(&eventv1.SnapshotMarker{
		Cluster: "local", Group: kind.Group, Resource: kind.Resource, Epoch: "crowd", Count: count,
		Stream: topology.StreamID(stream.CachedInfo()), Served: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.js.Publish(b.Context(), topology.MarkerSubject("local", kind), data); err != nil {
		b.Fatal(err)
	}
}

// converge starts one service and waits until it has published a result for every object. It returns the time.
func (c *largeStateEnv) converge(b *testing.B, name string, start func() (stop func())) time.Duration {
	b.Helper()
	before := c.said(b)
	begun := time.Now()
	stop := start()
	testenv.Eventually(b, 5*time.Minute, func() error {
		if got := c.said(b) - before; got < crowd {
			return fmt.Errorf("%s spoke of %d of %d objects", name, got, crowd)
		}
		return nil
	})
	testenv.AwaitCaughtUp(b, c.js, name)
	took := time.Since(begun)
	stop()
	return took
}

// around returns the surroundings of a service. Only writes of services in this process are counted.
func (c *largeStateEnv) around(b *testing.B, name string) serviceServers {
	b.Helper()
	return serviceServers{
		nats: c.bus.URLOf(name), openFGA: c.openFGA.Config(), kubeconfig: c.kube.ServiceKubeconfig(name),
		embed: service.EmbedConfig{Kube: c.kube.ServiceConfig(b, name), Log: slog.New(slog.DiscardHandler)},
	}
}

// run runs a service in this process.
func (c *largeStateEnv) run(b *testing.B, name string) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	around := c.around(b, name)
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx, name, around); err != nil {
			b.Errorf("%s: %v", name, err)
		}
	})
	return func() { cancel(); running.Wait() }
}

// said returns the number of published results.
func (c *largeStateEnv) said(b *testing.B) uint64 {
	b.Helper()
	stream, err := c.js.Stream(b.Context(), topology.Results)
	if err != nil {
		b.Fatal(err)
	}
	return stream.CachedInfo().State.LastSeq
}
