package opensearchsync

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
)

// answers is the reason of the condition Reachable when it is true.
const answers = "Answers"

type conditionWriter interface {
	ApplyOwnFields(ctx context.Context, p controller.UntypedRequest, kind kinds.Kind, obj event.Change, fields any) (event.Change, error)
}

// reachabilityReporter writes the condition Reachable of clusters.
type reachabilityReporter struct {
	writer conditionWriter
	log    *slog.Logger
	// undeclared means that the definition of clusters is the public operator's and has no conditions.
	undeclared atomic.Bool
}

// writeReachableCondition writes the condition Reachable of a cluster if its status or reason has changed.
func (r *reachabilityReporter) writeReachableCondition(ctx context.Context, p *controller.Request[Key],
	cluster informer.Object[opensearchv1.OpenSearchCluster], reason, message string,
) {
	is := condition.New(opensearchv1.Reachable, reason == answers, reason, message)
	has := cluster.Value.Status.Conditions
	was := meta.FindStatusCondition(has, is.Type)
	kind, _ := kinds.ByResource(cluster.Key.GroupResource)
	if was != nil && was.Status == is.Status && was.Reason == is.Reason || r.undeclared.Load() && !p.Resync || kind.Group == opensearchv1.LegacyGroup {
		return
	}
	fields := opensearchv1.OpenSearchClusterStatus{
		Conditions: condition.MergeConditions(has, []string{is.Type}, cluster.Value.Generation, metav1.Now().Rfc3339Copy(), is),
	}
	_, err := r.writer.ApplyOwnFields(ctx, p, kind, cluster.Change, fields)
	r.undeclared.Store(errors.Is(err, kube.ErrUndeclaredField))
	switch {
	case err == nil || errors.Is(err, kube.ErrUndeclaredField) || errors.Is(err, kube.ErrNotFound) || errors.Is(err, reconcile.ErrStale):
		// The runs of other kinds report the same.
	default:
		r.log.WarnContext(ctx, "condition of the cluster not written", slog.String("cluster", cluster.Key.String()), slog.Any("error", err))
	}
}

// reportServer reports the result of the last request to a server, if there was one.
func (r *reachabilityReporter) reportServer(ctx context.Context, p *controller.Request[Key],
	cluster informer.Object[opensearchv1.OpenSearchCluster], to *clusterConnection,
) {
	asked, silent := to.lastFailure()
	if !asked {
		return
	}
	if silent == nil {
		r.writeReachableCondition(ctx, p, cluster, answers, "OpenSearch answers")
		return
	}
	class, sentence := search.ClassifyError(silent)
	r.writeReachableCondition(ctx, p, cluster, class, "OpenSearch does not answer: "+sentence)
}

// lastFailure returns whether the server was ever called, and the error of the last call.
func (c *clusterConnection) lastFailure() (asked bool, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked, c.silent
}
