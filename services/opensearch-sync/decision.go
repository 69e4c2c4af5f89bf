package opensearchsync

import (
	"slices"
	"time"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// work is what a pass is about: the objects that are in a cluster, which can be reached.
type work struct {
	cluster *opensearchv1.OpenSearchCluster
	objects []object
	to      *connection
	// server is the UUID of the one that to leads to; others are objects that were made on another one.
	server string
	others []object
	// unrecorded are the obstacles of objects of which nothing can be recorded.
	unrecorded obstacles
	// contest is for how long changes that got no answer may still come to pass.
	contest time.Duration
	// young means that those of the replica before may.
	young bool
	// cleanup means that the cluster is no longer declared: only what leaves is seen to.
	cleanup bool
}

// divide takes as objects of w those that are on its server, or nowhere yet, and as others the rest that is not gone.
func (w *work) divide(all []object) {
	w.objects, w.others = nil, nil
	for _, o := range all {
		switch {
		case o.isOn(*w):
			w.objects = append(w.objects, o)
		case !o.gone():
			w.others = append(w.others, o)
		}
	}
}

// decision is a plan for objects of any kind.
type decision struct {
	outcomes map[string]outcome
	actions  []plan.Action
	again    bool
}

// outcome is what is to be said of one object: what its record must be before anything is written, and what it is after.
type outcome struct {
	plan.Verdict
	existing *bool
	// holds means that the object must not go before something else has gone.
	holds         bool
	before, after []opensearchv1.Provisioned
	trimmed       bool
	// unseen means that nobody has seen whether something came that was written for it, or was to be.
	unseen bool
}

// unseen reports whether there is who stays, or is held, of whom something may come unseen.
func (d decision) unseen(w work) bool {
	return slices.ContainsFunc(w.objects, func(o object) bool { return !o.gone() && d.outcomes[string(o.value.GetUID())].unseen })
}

// stated is what a decision takes objects for on whose behalf something is to be written, but for the states in confirmed.
func (s *state) stated(kind plan.Kind, w work, d decision, confirmed map[string]bool) (all []confirm.Statement) {
	touched := d.touched()
	for _, o := range w.objects {
		if !touched[o.UID] || confirmed[stateOf(o.Change)] {
			continue
		}
		if statement, ok := s.tables[kind].stated(o); ok {
			all = append(all, statement)
		}
	}
	return all
}

// stateOf names the state of an object.
func stateOf(c event.Change) string { return c.UID + "/" + c.ResourceVersion }

// touched are the UIDs of objects on whose behalf something is to be written.
func (d decision) touched() map[string]bool {
	all := map[string]bool{}
	for _, a := range d.actions {
		for _, uid := range a.For {
			all[uid] = true
		}
	}
	return all
}
