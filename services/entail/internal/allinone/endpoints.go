package allinone

import (
	"path/filepath"
	"time"

	"github.com/entail-dev/entail/services/internal/natsauth"
)

// Endpoints holds the addresses of all parts, once they serve.
type Endpoints struct {
	Kubernetes string `json:"kubernetes"`
	// Kubeconfig is empty if kubectl finds the cluster without it.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// NATS contains a name and a password: those of the administrator.
	NATS             string `json:"nats"`
	OpenFGA          string `json:"openfga"`
	OpenFGAHTTP      string `json:"openfgaHttp"`
	SyncService      string `json:"syncService"`
	StoreService     string `json:"storeService"`
	TupleService     string `json:"tupleService"`
	InferenceService string `json:"inferenceService"`
	AccessService    string `json:"accessService"`
	// OpenSearchService is empty when OpenSearch does not run.
	OpenSearchService string `json:"openSearchService,omitempty"`
	// OpenSearch is empty when OpenSearch does not run. OpenSearchPassword is the file with its administrator's
	// password.
	OpenSearch         string  `json:"openSearch,omitempty"`
	OpenSearchPassword string  `json:"openSearchPasswordFile,omitempty"`
	StateDir           string  `json:"stateDir"`
	Logs               string  `json:"logs"`
	Seconds            float64 `json:"seconds"`
}

func (m *localSystem) listEndpoints(took time.Duration) Endpoints {
	endpoints := Endpoints{
		Kubernetes: m.servers.kube.Host, Kubeconfig: m.servers.kubeconfig,
		NATS: m.servers.nats.URL(natsauth.Admin), OpenFGA: m.servers.openFGA.GRPCTarget(), OpenFGAHTTP: m.servers.openFGA.URL(),
		SyncService: m.services[0].address, StoreService: m.services[1].address, TupleService: m.services[2].address,
		InferenceService: m.services[3].address, AccessService: m.services[4].address,
		StateDir: m.dir, Logs: filepath.Join(m.dir, "logs"), Seconds: took.Seconds(),
	}
	if search := m.servers.openSearch; search != nil {
		endpoints.OpenSearch, endpoints.OpenSearchPassword = search.URL(), search.AdminPasswordFile()
		endpoints.OpenSearchService = m.services[5].address
	}
	return endpoints
}
