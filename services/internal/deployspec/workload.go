// Package deployspec describes how each service runs in a cluster: its ports, its connections, its memory.
// Deployments, Services, disruption budgets, network policies and routes in deploy are generated from it.
package deployspec

import (
	"fmt"

	"github.com/entail-dev/entail/services/internal/topology"
)

// Workload describes a service in a cluster.
type Workload struct {
	Service string
	// Serves lists the Connect services of the service.
	Serves []string
	// OpenFGA and OpenSearch mean that the service connects to these servers. Admission means that the API server
	// calls the service's webhooks.
	OpenFGA, OpenSearch, Admission bool
	// Memory is the memory limit, in MiB.
	Memory int
}

// Workloads returns the workloads of all services.
func Workloads() []Workload {
	return []Workload{
		{Service: topology.Watcher, Serves: []string{"entail.sync.v1.SyncService"}, Memory: 1024},
		{
			Service: topology.StoreSync, Serves: []string{"entail.store.v1.StoreService", "entail.policy.v1.PolicyService"},
			OpenFGA: true, Admission: true, Memory: 512,
		},
		{Service: topology.TupleSync, Serves: []string{"entail.tuple.v1.TupleService"}, OpenFGA: true, Memory: 1024},
		{Service: topology.ImpliedRole, Serves: []string{"entail.inference.v1.InferenceService"}, Admission: true, Memory: 512},
		{Service: topology.Webhook, Serves: []string{"entail.access.v1.AccessService"}, OpenFGA: true, Admission: true, Memory: 512},
		{Service: topology.OpensearchSync, Serves: []string{"entail.opensearch.v1.OpenSearchService"}, OpenSearch: true, Memory: 512},
	}
}

// Ports of every service.
const (
	QueryPort     = 8080
	AdmissionPort = 9443
)

// HeapLimit returns the soft limit of the Go heap. It is below the memory limit of the container.
func (w Workload) HeapLimit() string { return fmt.Sprintf("%dMiB", w.Memory*9/10) }
