package opensearchsync

import (
	"context"
	"fmt"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// recordMissing is the message for an object that was in step and has lost its record.
const recordMissing = "OpenSearch may have what was made for this object, and its record was removed from the status and the annotation " +
	opensearchv1.RecordAnnotation + "; remove from OpenSearch what is left, and annotate the object with "

// serverChanged returns the verdict on an object whose cluster now leads to another server than the object was made on.
func serverChanged(o object, server string) plan.Verdict {
	return plan.Verdict{
		State: opensearchv1.Error, Reason: plan.ClusterChanged,
		Message: fmt.Sprintf("OpenSearchCluster %s leads to OpenSearch %s, and this object was made on %s; lead it back there, or annotate the object with %s",
			o.value.Cluster(), server, o.madeOn(), o.toForget()),
	}
}

// remainsVerdict returns the verdict on a deleted object that is held because OpenSearch still has its entities.
func remainsVerdict(o object, why string) plan.Verdict {
	return plan.Verdict{
		State: opensearchv1.Error, Reason: "ClusterMissing",
		Message: fmt.Sprintf("OpenSearchCluster %s is gone, and OpenSearch %s still has what this object asked for: %s; declare the cluster again, "+
			"or annotate the object with %s to leave it there", o.value.Cluster(), o.madeOn(), why, o.toForget()),
	}
}

// membersOf returns the objects that runs of a cluster handle. An object that was made in the cluster and now names
// another one keeps its entities until it is deleted.
func (s *statuses) membersOf(c *opensearchv1.OpenSearchCluster, all []object) (membersOf []object) {
	for _, o := range all {
		if managed := o.value.State().ManagedCluster; managed != "" && managed != string(c.UID) && s.elsewhere(managed) {
			continue
		}
		if o.value.Cluster() != c.Name && !o.isDeleting() {
			o.obstacle = clusterChanged(o)
		}
		membersOf = append(membersOf, o)
	}
	return membersOf
}

// holdMembers reports objects that were made on another server. Nothing is written for them, and none is released.
func (s *statuses) holdMembers(ctx context.Context, p *controller.Request[Key], w syncInput) error {
	return forEach(ctx, w.others, func(o object) error { return s.writeVerdict(ctx, p, o, serverChanged(o, w.server)) })
}

// lastCluster returns the last state of a deleted cluster by UID, or nil if the view no longer holds it.
func (s *state) lastCluster(uid string) *opensearchv1.OpenSearchCluster {
	for _, c := range s.clusters {
		for _, o := range c.rows.GoneBy(byUID, uid) {
			return o.Value
		}
	}
	return nil
}
