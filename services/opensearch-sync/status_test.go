package opensearchsync

import (
	"context"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// notes are the reasons that objects were told, by their UIDs.
type notes struct {
	mu  sync.Mutex
	of  map[string]string
	all []string
}

func (n *notes) Write(_ context.Context, _ consume.Reporter, s controller.Status) (event.Change, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of[s.Object.UID] = s.Message
	n.all = append(n.all, s.Object.UID)
	return s.Object, nil
}

// In one pass there may be objects of the cluster, of one that had its name before, and of others: each gets its own answer.
func TestOfObjectsOfSeveralClustersEachIsToldItsOwn(t *testing.T) {
	w, told := newTold(t), &notes{of: map[string]string{}}
	key := Key{clusterKey("local", "default", "search"), plan.Users}
	s := &statuses{writer: told, rivals: newRivals(nil, w.lives), elsewhere: func(uid string) bool { return uid == "elsewhere" }}
	of := func(name, cluster, managed string) object {
		u := userNamed(name)
		u.Spec.OpensearchCluster.Name, u.Status.ManagedCluster = cluster, managed
		return object{Change: event.Change{Key: w.key(name), UID: string(u.UID)}, value: u}
	}
	leaves := func(o object) object {
		o.value.SetDeletionTimestamp(&metav1.Time{})
		return o
	}
	all := []object{
		of("new", "search", ""), of("ours", "search", "uid-search"), of("moved", "other", "uid-search"), leaves(of("leaves", "other", "uid-search")),
		of("displaced", "search", "before"), leaves(of("displaced-leaves", "search", "before")), of("elsewhere", "search", "elsewhere"),
	}
	p := consume.NewPass(w.view, key, false)
	ours, err := s.strangers(t.Context(), p, clusterOf("uid-search"), all)
	if err != nil {
		t.Fatal(err)
	}
	hindered := map[string]bool{}
	for _, o := range ours {
		hindered[o.UID] = o.obstacle != nil
	}
	for uid, want := range map[string]bool{"uid-new": false, "uid-ours": false, "uid-moved": true, "uid-leaves": false} {
		if got, there := hindered[uid]; !there || got != want {
			t.Errorf("%s is among the cluster's: %t, hindered: %t, want %t", uid, there, got, want)
		}
	}
	if len(ours) != 4 || !slices.Equal(told.all, []string{"uid-displaced"}) || told.of["uid-displaced"] != clusterChanged(all[4]).Message {
		t.Errorf("%d are the cluster's, told was %v", len(ours), told.of)
	}
	results := p.Results()
	if len(results) != 1 || results[0].Change.UID != "uid-displaced-leaves" || results[0].Outcome != eventv1.Outcome_OUTCOME_APPLIED {
		t.Errorf("let go are %v", results)
	}
}

// While what was sent for somebody may still come to pass, nobody lets them go, or forgets that they were.
func TestWhoeverLeavesIsHeldWhileAChangeIsContested(t *testing.T) {
	for name, c := range map[string]struct {
		w            work
		unseen, gone bool
		// outcome is what is reported; cleared is that nothing is looked for any more.
		outcome eventv1.Outcome
		cleared bool
	}{
		"sure":                          {work{}, false, false, eventv1.Outcome_OUTCOME_APPLIED, false},
		"contested":                     {work{contest: 1}, false, false, eventv1.Outcome_OUTCOME_PENDING, false},
		"in a young turn":               {work{young: true}, false, false, eventv1.Outcome_OUTCOME_APPLIED, false},
		"gone, sure":                    {work{}, false, true, eventv1.Outcome_OUTCOME_APPLIED, true},
		"gone, unseen":                  {work{}, true, true, eventv1.Outcome_OUTCOME_APPLIED, true},
		"gone, contested":               {work{contest: 1}, false, true, eventv1.Outcome_OUTCOME_APPLIED, false},
		"gone in a young turn, and was": {work{young: true}, false, true, eventv1.Outcome_OUTCOME_APPLIED, true},
		"gone in a young turn, unseen":  {work{young: true}, true, true, eventv1.Outcome_OUTCOME_APPLIED, false},
	} {
		t.Run(name, func(t *testing.T) {
			world := newTold(t)
			s := &statuses{writer: &notes{of: map[string]string{}}, rivals: newRivals(nil, world.lives), clear: world.clear}
			u := userNamed("anna")
			u.DeletionTimestamp = &metav1.Time{}
			u.Status.ManagedCluster, u.Status.State = "uid-search", opensearchv1.Created
			o := object{Change: event.Change{Key: world.key("anna"), UID: "uid-anna", Deleted: c.gone}, value: u}
			c.w.cluster, c.w.objects = clusterOf("uid-search"), []object{o}
			p := consume.NewPass(world.view, Key{Kind: plan.Users}, false)
			d := decision{outcomes: map[string]outcome{"uid-anna": {Verdict: plan.InStep(), unseen: c.unseen}}}
			if err := s.conclude(t.Context(), p, c.w, d, applied{}); err != nil {
				t.Fatal(err)
			}
			if results := p.Results(); len(results) != 1 || results[0].Outcome != c.outcome || world.isCleared(o) != c.cleared {
				t.Errorf("reported is %v, cleared: %t", results, world.isCleared(o))
			}
		})
	}
}

// wroteFields keeps the last status that was written.
type wroteFields struct{ fields fields }

func (w *wroteFields) Write(_ context.Context, _ consume.Reporter, s controller.Status) (event.Change, error) {
	w.fields, _ = s.Fields.(fields)
	return s.Object, nil
}

// The verdict that another controller writes makes Ready false, and so must not end itself; nor must an outage end it.
func TestOtherControllerIsRememberedOverPasses(t *testing.T) {
	w, written := newTold(t), &wroteFields{}
	s := &statuses{writer: written, rivals: newRivals(nil, w.lives)}
	u := userNamed("anna")
	u.Generation = 1
	o := object{Change: event.Change{Key: w.key("anna"), UID: string(u.UID)}, value: u}
	p := consume.NewPass(w.view, Key{clusterKey("local", "default", "search"), plan.Users}, false)
	for _, v := range []plan.Verdict{
		*otherWriter(), {State: opensearchv1.Pending, Reason: "Unavailable"}, {State: opensearchv1.Pending, Reason: "ClusterMissing"},
	} {
		u.Generation++ // A status of another generation is written again.
		if err := s.waiting(t.Context(), p, []object{o}, v); err != nil {
			t.Fatal(err)
		}
		u.Status.Common = written.fields.Common
		if in := planned([]object{o}, "server", nil, nil)[0]; !in.Synced || in.InStep {
			t.Errorf("after %s: got synced %t, in step %t; want true, false", v.Reason, in.Synced, in.InStep)
		}
	}
}
