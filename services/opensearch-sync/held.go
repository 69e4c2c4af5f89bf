package opensearchsync

import (
	"context"
	"fmt"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// recordMissing is the message for an object that was in step and has lost its record.
const recordMissing = "OpenSearch may still hold the data of this object, and the record in its status and in the annotation " +
	opensearchv1.RecordAnnotation + " was removed; remove the data from OpenSearch, and annotate the object with "

// serverChangedVerdict returns the verdict on an object whose cluster now leads to another server than the object was made on.
func serverChangedVerdict(o declaredObject, server string) plan.Verdict {
	return plan.Verdict{
		State: opensearchv1.Error, Reason: plan.ClusterChanged,
		Message: fmt.Sprintf("OpenSearchCluster %s leads to OpenSearch %s, and this object was created on %s; "+
			"make it lead to that server again, or annotate the object with %s",
			o.value.Cluster(), server, o.managedServerName(), o.forgetAnnotation()),
	}
}

// entitiesRemainVerdict returns the verdict on a deleted object that is held because OpenSearch still has its entities.
func entitiesRemainVerdict(o declaredObject, why string) plan.Verdict {
	return plan.Verdict{
		State: opensearchv1.Error, Reason: "ClusterMissing",
		Message: fmt.Sprintf("OpenSearchCluster %s was deleted, and OpenSearch %s still holds the data of this object: %s; declare the cluster again, "+
			"or annotate the object with %s to leave the data there", o.value.Cluster(), o.managedServerName(), why, o.forgetAnnotation()),
	}
}

// objectsHandledIn returns the objects that runs of a cluster handle. An object that was made in the cluster and now names
// another one keeps its entities until it is deleted.
func (s *statusReporter) objectsHandledIn(c *opensearchv1.OpenSearchCluster, all []declaredObject) (handled []declaredObject) {
	for _, o := range all {
		if managed := o.value.CommonStatus().ManagedCluster; managed != "" && managed != string(c.UID) && s.elsewhere(managed) {
			continue
		}
		if o.value.Cluster() != c.Name && !o.isDeleting() {
			o.obstacle = clusterChangedVerdict(o)
		}
		handled = append(handled, o)
	}
	return handled
}

// reportObjectsElsewhere reports objects that were made on another server, and objects that forget the present one. Nothing is written for
// them. Only a deleted object that forgets the server is released.
func (s *statusReporter) reportObjectsElsewhere(ctx context.Context, p *controller.Request[Key], w syncInput) error {
	return forEachParallel(ctx, w.others, func(o declaredObject) error {
		switch {
		case !o.shouldForgetServer(w.server):
			return s.writeVerdict(ctx, p, o, serverChangedVerdict(o, w.server))
		case o.isDeleting():
			return s.removeFinalizer(ctx, p, o, nil)
		}
		if o.written != nil { // Its status keeps the record, which counts again without the annotation.
			o.value = o.written
		}
		return s.writeVerdict(ctx, p, o, plan.Verdict{State: opensearchv1.Error, Reason: plan.Invalid, Message: fmt.Sprintf(
			"annotation %s names OpenSearch %s, to which OpenSearchCluster %s leads; remove the annotation, or delete the object to leave its data "+
				"there", opensearchv1.ForgetAnnotation, w.server, o.value.Cluster())})
	})
}

// withForgetHint returns a verdict, and names the annotation if OpenSearch keeps what a deleted object has made.
func (o declaredObject) withForgetHint(v plan.Verdict) plan.Verdict {
	if v.Reason == plan.Reserved && o.isDeleting() {
		v.Message += ", or leave it there by the annotation " + o.forgetAnnotation()
	}
	return v
}

// shouldForgetServer reports whether an object forgets what was made for it on a server.
func (o declaredObject) shouldForgetServer(server string) bool {
	return o.value.GetAnnotations()[opensearchv1.ForgetAnnotation] == server
}

// lastStateOfDeletedCluster returns the last state of a deleted cluster by UID, unless the informer no longer holds it.
func (s *state) lastStateOfDeletedCluster(uid string) []informer.Object[opensearchv1.OpenSearchCluster] {
	for _, c := range s.clusters {
		if gone := c.rows.TombstonesByIndex(byUID, uid); len(gone) > 0 {
			return gone[:1]
		}
	}
	return nil
}
