package opensearchsync

import (
	"slices"
	"time"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// syncInput is the input of a run: a cluster that can be reached, and its objects.
type syncInput struct {
	cluster *opensearchv1.OpenSearchCluster
	objects []object
	to      *connection
	// server is the UUID of the server that to leads to. others holds objects that were made on another server.
	server string
	others []object
	// unrecorded holds the obstacles of objects whose record cannot be written.
	unrecorded obstacles
	// unlock lets other runs use the document of the run.
	unlock func()
	// contest is how long unanswered changes may still take effect.
	contest time.Duration
	// young means that changes of the previous leader may still take effect.
	young bool
	// cleanup means that the cluster is no longer declared. The run then handles only deleted objects.
	cleanup bool
}

// divideObjects splits objects: w.objects are on the server of the run or on none yet, w.others are elsewhere or forget this
// server. It drops gone objects of the second group.
func (w *syncInput) divideObjects(all []object) {
	w.objects, w.others = nil, nil
	for _, o := range all {
		switch {
		case o.isOn(*w) && !o.forgets(w.server):
			w.objects = append(w.objects, o)
		case !o.isGone():
			w.others = append(w.others, o)
		}
	}
}

// decision is the plan for objects of any kind.
type decision struct {
	outcomes map[string]outcome
	actions  []plan.Action
	again    bool
}

// outcome is the decision about one object. before is the record that it must have before any write, after is the
// record afterwards.
type outcome struct {
	plan.Verdict
	existing *bool
	// holds means that the object must not be released before an entity or entry is removed.
	holds         bool
	before, after []opensearchv1.Provisioned
	trimmed       bool
	// unseen means that an earlier write for the object may still take effect.
	unseen bool
}

// isUncertain reports whether an earlier write may still take effect for an object that exists.
func (d decision) isUncertain(w syncInput) bool {
	return slices.ContainsFunc(w.objects, func(o object) bool { return !o.isGone() && d.outcomes[string(o.value.GetUID())].unseen })
}

// expectedForDeletes returns the expected states of the objects whose entity is deleted.
func (s *state) expectedForDeletes(kind plan.Kind, w syncInput, d decision) (all []verify.Expected) {
	deleted := d.touchedUIDs(func(a plan.Action) bool { return a.Body == nil })
	for _, o := range w.objects {
		if deleted[o.UID] {
			all = append(all, s.tables[kind].expectedState(o))
		}
	}
	return all
}

// touchedUIDs returns the UIDs of objects for which there is such an action.
func (d decision) touchedUIDs(is func(plan.Action) bool) map[string]bool {
	all := map[string]bool{}
	for _, a := range d.actions {
		for _, uid := range a.For {
			all[uid] = all[uid] || is(a)
		}
	}
	return all
}
