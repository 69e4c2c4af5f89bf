package opensearchsync

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// obstacles are why nothing can be written for objects, by their UIDs.
type obstacles map[string]*plan.Verdict

// on puts obstacles before those objects that stay: whoever leaves goes.
func (all obstacles) on(objects []object) {
	for i, o := range objects {
		if verdict := all[string(o.value.GetUID())]; verdict != nil && !o.leaving() {
			objects[i].obstacle = verdict
		}
	}
}

func recordTooLarge() *plan.Verdict {
	return &plan.Verdict{
		State: opensearchv1.Error, Reason: "TooLarge",
		Message: "what it gives is more than the API server can record in its status: split it into several objects",
	}
}

// quiet is how long another controller must not have written a status before ours is written again: the public operator comes
// every half minute.
const quiet = 2 * time.Minute

// rivals finds out whether another controller writes the status of objects, too: it leaves out what only we say.
type rivals struct {
	now func() time.Time

	mu sync.Mutex
	// ours are the objects of which a status of ours has been seen, struck is when one of them was without last.
	ours   map[string]bool
	struck map[string]time.Time
}

func newRivals(now func() time.Time) *rivals {
	return &rivals{now: now, ours: map[string]bool{}, struck: map[string]time.Time{}}
}

// on puts an obstacle before objects that another controller has written of late, and reports whether there are any.
func (r *rivals) on(objects []object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := obstacles{}
	for _, o := range objects {
		uid := string(o.value.GetUID())
		switch {
		case isOurs(*o.value.State()):
			r.ours[uid] = true
		case r.ours[uid]:
			r.struck[uid] = r.now()
		}
		at, struck := r.struck[uid]
		switch {
		case !struck:
		case o.value.GetAnnotations()[opensearchv1.AdoptAnnotation] == "true" || r.now().Sub(at) >= quiet:
			delete(r.struck, uid)
		default:
			found[uid] = otherWriter()
		}
	}
	found.on(objects)
	return len(found) > 0
}

// wrote is told what became of a status that we have written: the event of it may wake nobody. Where a CustomResourceDefinition
// is another's, nothing that only we say is kept.
func (r *rivals) wrote(uid string, kept opensearchv1.Common) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if isOurs(kept) {
		r.ours[uid] = true
	}
}

// isOurs reports whether a status says what only we say.
func isOurs(status opensearchv1.Common) bool {
	return meta.FindStatusCondition(status.Conditions, opensearchv1.Ready) != nil
}

// forget is told of objects that go.
func (r *rivals) forget(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ours, uid)
	delete(r.struck, uid)
}

func otherWriter() *plan.Verdict {
	return &plan.Verdict{
		State: opensearchv1.Error, Reason: plan.OtherWriter,
		Message: "another controller has written the status of this object: stop one of the two; nothing is written until it has left it alone for " +
			quiet.String() + ", or the object is annotated with " + opensearchv1.AdoptAnnotation + "=true",
	}
}
