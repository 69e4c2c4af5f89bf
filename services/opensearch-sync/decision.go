package opensearchsync

import (
	"slices"
	"time"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// syncInput is the input of a run: a cluster that can be reached, and its objects.
type syncInput struct {
	cluster *opensearchv1.OpenSearchCluster
	objects []declaredObject
	to      *clusterConnection
	// server is the UUID of the server that to leads to. others holds objects that were made on another server.
	server string
	others []declaredObject
	// unrecorded holds the obstacles of objects whose record cannot be written.
	unrecorded obstaclesByUID
	// lists bounds the memory for the lists of the run.
	lists *search.Allowance
	// unlock lets other runs use the document of the run.
	unlock func()
	// contest is how long unanswered changes may still take effect.
	contest time.Duration
	// young is how long changes of the previous leader, or from before an outage, may still take effect.
	young time.Duration
	// cleanup means that the cluster is no longer declared. The run then handles only deleted objects.
	cleanup bool
}

// splitByServer splits objects: w.objects are on the server of the run or on none yet, w.others are elsewhere or forget this
// server. It drops gone objects of the second group.
func (w *syncInput) splitByServer(all []declaredObject) {
	w.objects, w.others = nil, nil
	for _, o := range all {
		switch {
		case o.isOnServerOf(*w) && !o.shouldForgetServer(w.server):
			w.objects = append(w.objects, o)
		case !o.isDeleted():
			w.others = append(w.others, o)
		}
	}
}

// kindDecision is the plan for objects of any kind.
type kindDecision struct {
	decisions map[string]objectDecision
	actions   []plan.Action
	again     bool
}

// objectDecision is the decision about one object. before is the record that it must have before any write, after is
// the record afterwards.
type objectDecision struct {
	plan.Verdict
	existing *bool
	// holds means that the object must not be released before an entity or entry is removed.
	holds         bool
	before, after []opensearchv1.Provisioned
	trimmed       bool
	// unseen means that an earlier write for the object may still create something. mayAppear holds these entries of a binding.
	unseen    bool
	mayAppear []opensearchv1.Provisioned
	// drops means that an earlier removal for the object may still take effect, which names entries by their index.
	drops bool
}

// canReappear reports whether an unanswered write may still create something for a deleted object.
func (o objectDecision) canReappear(kind plan.EntityKind, w syncInput) bool {
	return w.contest > 0 && (kind != plan.Mappings || len(o.after) > 0)
}

// hasUncertainWrite reports whether an earlier removal may still take effect, or another write for an object that exists. There
// is no earlier write for new objects.
func (d kindDecision) hasUncertainWrite(w syncInput, isNew func(uid string) bool) bool {
	return slices.ContainsFunc(w.objects, func(o declaredObject) bool {
		is := d.decisions[string(o.value.GetUID())]
		return (is.drops || is.unseen && !o.isDeleted()) && !isNew(string(o.value.GetUID()))
	})
}

// expectedDeletedObjects returns the expected states of the objects whose entity is deleted.
func (s *state) expectedDeletedObjects(kind plan.EntityKind, w syncInput, d kindDecision) (all []verify.ExpectedState) {
	deleted := d.uidsWithActions(func(a plan.Action) bool { return a.Body == nil })
	for _, o := range w.objects {
		if deleted[o.UID] {
			all = append(all, s.tables[kind].expectedObject(o))
		}
	}
	return all
}

// uidsWithActions returns the UIDs of objects for which there is such an action.
func (d kindDecision) uidsWithActions(is func(plan.Action) bool) map[string]bool {
	all := map[string]bool{}
	for _, a := range d.actions {
		for _, uid := range a.For {
			all[uid] = all[uid] || is(a)
		}
	}
	return all
}
