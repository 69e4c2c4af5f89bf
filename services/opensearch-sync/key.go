package opensearchsync

import (
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// Key is one document of one OpenSearch cluster: whoever writes it writes alone, and no cluster waits for another.
type Key struct {
	// Cluster is the OpenSearchCluster.
	Cluster event.Key
	Kind    plan.Kind
}

// String is for people.
func (k Key) String() string { return k.Cluster.String() + " " + string(k.Kind) }
