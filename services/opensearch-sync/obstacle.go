package opensearchsync

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// obstaclesByUID holds the reasons why nothing can be written for objects, by UID.
type obstaclesByUID map[string]*plan.Verdict

// applyToObjects sets the obstacles of objects that are not being deleted. Obstacles must not block a removal.
func (all obstaclesByUID) applyToObjects(objects []declaredObject) {
	for i, o := range objects {
		if verdict := all[string(o.value.GetUID())]; verdict != nil && !o.isDeleting() {
			objects[i].obstacle = verdict
		}
	}
}

func recordTooLargeVerdict() *plan.Verdict {
	return &plan.Verdict{
		State: opensearchv1.Error, Reason: plan.TooLarge,
		Message: "the record of its tuples does not fit into its status; split it into several objects",
	}
}

// misreadNameObstacle returns an obstacle if OpenSearch would read a name otherwise. A deleted object has none.
func misreadNameObstacle(o declaredObject, names ...string) *plan.Verdict {
	if o.isDeleting() || !slices.ContainsFunc(names, search.IsMisreadName) {
		return nil
	}
	return &plan.Verdict{State: opensearchv1.Error, Reason: plan.Refused, Message: "a name has a ~, which OpenSearch reads otherwise; use another name"}
}

// quiet is how long another controller must leave a status alone before ours is written again. The public operator
// writes every half minute.
const quiet = 2 * time.Minute

// foreignWriterDetector detects other controllers that write the status of an object. Their writes drop the conditions that only
// opensearch-sync writes.
type foreignWriterDetector struct {
	now func() time.Time

	mu sync.Mutex
	// struck holds the objects whose status was once ours. The value is when the status was last seen without our
	// conditions, or zero for never.
	struck perObjectCache[time.Time]
}

func newForeignWriterDetector(now func() time.Time, lives func(k event.Key, uid string) bool) *foreignWriterDetector {
	return &foreignWriterDetector{now: now, struck: newPerObjectCache[time.Time](lives)}
}

// markForeignWritten sets an obstacle on objects that another controller has written within quiet, and reports whether it found any. It
// leaves out kinds whose definition drops our conditions: there every write drops them.
func (r *foreignWriterDetector) markForeignWritten(objects []declaredObject, foreign func(kinds.Kind) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := obstaclesByUID{}
	for _, o := range objects {
		uid := string(o.value.GetUID())
		at, known := r.struck.getValue(uid)
		ours := isOurStatus(*o.value.CommonStatus())
		if !known && !ours || foreign(o.kind) {
			continue
		}
		if !ours {
			at = r.now()
		}
		if o.value.GetAnnotations()[opensearchv1.AdoptAnnotation] == "true" || r.now().Sub(at) >= quiet {
			at = time.Time{}
		}
		if r.struck.putValue(o.Key, uid, at); !at.IsZero() {
			found[uid] = otherWriterVerdict()
		}
	}
	found.applyToObjects(objects)
	return len(found) > 0
}

// forgetAll forgets all observations.
func (r *foreignWriterDetector) forgetAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.struck.of = map[string]cachedValue[time.Time]{}
}

// recordOwnWrite records a status that we have written, because its event may start no run. kept is the status as the API server
// stored it: a foreign CustomResourceDefinition drops our conditions.
func (r *foreignWriterDetector) recordOwnWrite(now event.Change, kept opensearchv1.Common) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.struck.getValue(now.UID); !known && isOurStatus(kept) {
		r.struck.putValue(now.Key, now.UID, time.Time{})
	}
}

// isOurStatus reports whether a status has the condition that only opensearch-sync writes.
func isOurStatus(status opensearchv1.Common) bool {
	return meta.FindStatusCondition(status.Conditions, opensearchv1.Ready) != nil
}

// forgetUID drops the observations of a released object.
func (r *foreignWriterDetector) forgetUID(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.struck.forgetUID(uid)
}

func otherWriterVerdict() *plan.Verdict {
	return &plan.Verdict{
		State: opensearchv1.Error, Reason: plan.OtherWriter,
		Message: "another controller writes the status of this object; stop it; nothing is written until it has been silent for " +
			quiet.String() + ", or the object is annotated with " + opensearchv1.AdoptAnnotation + "=true",
	}
}
