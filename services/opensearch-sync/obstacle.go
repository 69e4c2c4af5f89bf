package opensearchsync

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
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

// misread returns an obstacle for an object that stays and whose names OpenSearch would read otherwise.
func misread(o object, names ...string) *plan.Verdict {
	if o.leaving() || !slices.ContainsFunc(names, search.Misread) {
		return nil
	}
	return &plan.Verdict{State: opensearchv1.Error, Reason: plan.Refused, Message: "a name has a ~, which OpenSearch reads otherwise; use another name"}
}

// quiet is how long another controller must not have written a status before ours is written again: the public operator comes
// every half minute.
const quiet = 2 * time.Minute

// rivals finds out whether another controller writes the status of objects, too: it leaves out what only we say.
type rivals struct {
	now func() time.Time

	mu sync.Mutex
	// struck is when objects were without a status of ours last of which one has been seen: zero if they never were.
	struck memory[time.Time]
}

func newRivals(now func() time.Time, lives func(k event.Key, uid string) bool) *rivals {
	return &rivals{now: now, struck: newMemory[time.Time](lives)}
}

// on puts an obstacle before objects that another controller has written of late, and reports whether there are any.
func (r *rivals) on(objects []object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := obstacles{}
	for _, o := range objects {
		uid := string(o.value.GetUID())
		at, known := r.struck.get(uid)
		ours := isOurs(*o.value.State())
		if !known && !ours {
			continue
		}
		if !ours {
			at = r.now()
		}
		if o.value.GetAnnotations()[opensearchv1.AdoptAnnotation] == "true" || r.now().Sub(at) >= quiet {
			at = time.Time{}
		}
		if r.struck.put(o.Key, uid, at); !at.IsZero() {
			found[uid] = otherWriter()
		}
	}
	found.on(objects)
	return len(found) > 0
}

// reset forgets whose status was ours.
func (r *rivals) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.struck.of = map[string]remembered[time.Time]{}
}

// wrote is told what became of a status that we have written: the event of it may wake nobody. Where a CustomResourceDefinition
// is another's, nothing that only we say is kept.
func (r *rivals) wrote(now event.Change, kept opensearchv1.Common) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.struck.get(now.UID); !known && isOurs(kept) {
		r.struck.put(now.Key, now.UID, time.Time{})
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
	r.struck.forget(uid)
}

func otherWriter() *plan.Verdict {
	return &plan.Verdict{
		State: opensearchv1.Error, Reason: plan.OtherWriter,
		Message: "another controller has written the status of this object: stop one of the two; nothing is written until it has left it alone for " +
			quiet.String() + ", or the object is annotated with " + opensearchv1.AdoptAnnotation + "=true",
	}
}
