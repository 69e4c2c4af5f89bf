package opensearchsync

import (
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// Key names one document of one OpenSearch cluster. A document has one writer at a time, and clusters do not wait for
// each other.
type Key struct {
	// Cluster is the OpenSearchCluster.
	Cluster event.Key
	Kind    plan.EntityKind
}

func (k Key) String() string { return k.Cluster.String() + " " + string(k.Kind) }
