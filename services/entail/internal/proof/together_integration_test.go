//go:build integration

package proof

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// inProcessServices holds services in this process, and the servers of the test that they use.
type inProcessServices struct {
	bus     *testenv.NATSServer
	kube    *testenv.KubeServer
	objects dynamic.Interface
	openFGA *fga.Client
	// backend is the server behind openFGA.
	backend *testenv.OpenFGAServer
	// around holds all servers except NATS and Kubernetes, where every service has its own account.
	around serviceServers
}

// startInProcessServices starts the servers and the named services.
func startInProcessServices(t testing.TB, names ...string) *inProcessServices {
	t.Helper()
	bus, openFGA, kube := testenv.StartNATS(t), testenv.LazyOpenFGA(t), testenv.StartKube(t)
	s := &inProcessServices{bus: bus, kube: kube, objects: kube.DynamicClient(t), openFGA: openFGA.Client(t), backend: openFGA, around: serviceServers{
		openFGA: openFGA.Config(),
		embed:   service.EmbedConfig{Log: slog.New(slog.DiscardHandler)},
	}}
	for _, name := range names {
		s.start(t, name)
	}
	return s
}

// start runs a service until the test ends or the caller calls stop.
func (s *inProcessServices) start(t testing.TB, name string) (stop func()) {
	t.Helper()
	around := s.around
	around.nats, around.embed.Kube = s.bus.URLOf(name), s.kube.ServiceConfig(t, name)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx, name, around); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return stop
}

// stores applies n Stores with the core module and no tuples. Once they have a model, it returns their names and
// OpenFGA IDs.
func (s *inProcessServices) stores(t testing.TB, n int) map[string]string {
	t.Helper()
	for i := range n {
		s.kube.Apply(t, kinds.Stores(), fmt.Sprintf("bench-%03d", i), corev1alpha1.StoreSpec{CoreModule: core})
	}
	ids := map[string]string{}
	testenv.Eventually(t, time.Minute, func() error {
		found, err := list[corev1alpha1.Store](t.Context(), s.objects, kinds.Stores())
		if err != nil {
			return err
		}
		for name, store := range found {
			if store.Status.AuthorizationModelID == "" {
				return fmt.Errorf("store %s has no model yet", name)
			}
			ids[name] = store.Status.StoreID
		}
		return nil
	})
	return ids
}

func ready(conditions []metav1.Condition, generation int64) bool {
	c := meta.FindStatusCondition(conditions, corev1alpha1.Ready)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}
