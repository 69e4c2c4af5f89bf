package opensearchsync

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// statusMessages records the messages that statuses received, by UID.
type statusMessages struct {
	mu  sync.Mutex
	of  map[string]string
	all []string
}

func (n *statusMessages) Write(_ context.Context, _ controller.UntypedRequest, s setup.StatusUpdate) (event.Change, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of[s.Object.UID] = s.Message
	n.all = append(n.all, s.Object.UID)
	return s.Object, nil
}

func (n *statusMessages) Refresh(context.Context, kinds.Kind, event.Change) error { return nil }

func TestRunInputSelectsObjectsByClusterAndServer(t *testing.T) {
	w := newFeededState(t)
	s := &statusReporter{elsewhere: func(uid string) bool { return uid == "elsewhere" }}
	of := func(name, cluster, managed, server string) declaredObject {
		u := userNamed(name)
		u.Spec.OpensearchCluster.Name, u.Status.ManagedCluster, u.Status.ManagedServer = cluster, managed, server
		return declaredObject{Change: event.Change{Key: w.key(name), UID: string(u.UID)}, value: u}
	}
	leaves := func(o declaredObject) declaredObject {
		o.value.SetDeletionTimestamp(&metav1.Time{})
		return o
	}
	gone := of("gone-on-another", "search", "before", "other")
	gone.Deleted = true
	all := []declaredObject{
		of("new", "search", "", ""), of("ours", "search", "uid-search", "server"), of("unnamed", "search", "uid-search", ""),
		of("moved", "other", "uid-search", "server"), leaves(of("leaves", "other", "uid-search", "server")), of("elsewhere", "search", "elsewhere", "server"),
		of("declared-again", "search", "before", "server"), of("unproven", "search", "before", ""), of("on-another", "search", "uid-search", "other"), gone,
	}
	pass := syncInput{cluster: clusterOf("uid-search"), server: "server"}
	pass.splitByServer(s.objectsHandledIn(pass.cluster, all))
	names := func(objects []declaredObject) (all []string) {
		for _, o := range objects {
			name := o.value.GetName()
			if o.obstacle != nil {
				name += " hindered"
			}
			all = append(all, name)
		}
		return all
	}
	if got, want := names(pass.objects), []string{"new", "ours", "unnamed", "moved hindered", "leaves", "declared-again"}; !slices.Equal(got, want) {
		t.Errorf("got objects %v, want %v", got, want)
	}
	if got, want := names(pass.others), []string{"unproven", "on-another"}; !slices.Equal(got, want) {
		t.Errorf("got objects of other servers %v, want %v", got, want)
	}
}

// While a change without an answer may still take effect, its object is neither released nor forgotten.
func TestDeletedObjectIsKeptWhileWriteIsUncertain(t *testing.T) {
	for name, c := range map[string]struct {
		w            syncInput
		unseen, gone bool
		// outcome is the reported outcome. cleared means that the gone object needs no further attention.
		outcome eventv1.Outcome
		cleared bool
	}{
		"sure":                          {syncInput{}, false, false, eventv1.Outcome_OUTCOME_APPLIED, false},
		"contested":                     {syncInput{contest: 1}, false, false, eventv1.Outcome_OUTCOME_PENDING, false},
		"in a young turn":               {syncInput{young: true}, false, false, eventv1.Outcome_OUTCOME_APPLIED, false},
		"gone, sure":                    {syncInput{}, false, true, eventv1.Outcome_OUTCOME_APPLIED, true},
		"gone, unseen":                  {syncInput{}, true, true, eventv1.Outcome_OUTCOME_APPLIED, true},
		"gone, contested":               {syncInput{contest: 1}, false, true, eventv1.Outcome_OUTCOME_APPLIED, false},
		"gone in a young turn, and was": {syncInput{young: true}, false, true, eventv1.Outcome_OUTCOME_APPLIED, true},
		"gone in a young turn, unseen":  {syncInput{young: true}, true, true, eventv1.Outcome_OUTCOME_APPLIED, false},
	} {
		t.Run(name, func(t *testing.T) {
			world := newFeededState(t)
			s := &statusReporter{writer: &statusMessages{of: map[string]string{}}, schemas: newForeignSchemas(prometheus.NewRegistry(), slog.New(slog.DiscardHandler)), rivals: newForeignWriterDetector(nil, world.isLiveUID), clear: world.markCleared}
			u := userNamed("anna")
			u.DeletionTimestamp = &metav1.Time{}
			u.Status.ManagedCluster, u.Status.State = "uid-search", opensearchv1.Created
			o := declaredObject{Change: event.Change{Key: world.key("anna"), UID: "uid-anna", Deleted: c.gone}, value: u}
			c.w.cluster, c.w.objects = clusterOf("uid-search"), []declaredObject{o}
			p := controller.NewRequest(world.view, Key{Kind: plan.Users}, false)
			d := kindDecision{outcomes: map[string]objectOutcome{"uid-anna": {Verdict: plan.SyncedVerdict(), unseen: c.unseen}}}
			if err := s.writeResults(t.Context(), p, c.w, d, applyResult{}); err != nil {
				t.Fatal(err)
			}
			if results := p.Results(); len(results) != 1 || results[0].Outcome != c.outcome || world.isCleared(o) != c.cleared {
				t.Errorf("reported is %v, cleared: %t", results, world.isCleared(o))
			}
		})
	}
}

// wroteFields holds the last written status.
type wroteFields struct{ fields statusFields }

func (w *wroteFields) Write(_ context.Context, _ controller.UntypedRequest, s setup.StatusUpdate) (event.Change, error) {
	w.fields, _ = s.Fields.(statusFields)
	return s.Object, nil
}

func (w *wroteFields) Refresh(context.Context, kinds.Kind, event.Change) error { return nil }

// The verdict OtherController makes Ready false. It must not end by its own write, nor during an outage.
func TestForeignWriterIsRememberedAcrossRuns(t *testing.T) {
	w, written := newFeededState(t), &wroteFields{}
	s := &statusReporter{writer: written, schemas: newForeignSchemas(prometheus.NewRegistry(), slog.New(slog.DiscardHandler)), rivals: newForeignWriterDetector(nil, w.isLiveUID)}
	u := userNamed("anna")
	u.Generation = 1
	o := declaredObject{Change: event.Change{Key: w.key("anna"), UID: string(u.UID)}, value: u}
	p := controller.NewRequest(w.view, Key{clusterKey("local", "default", "search"), plan.Users}, false)
	for _, v := range []plan.Verdict{
		*otherWriterVerdict(), {State: opensearchv1.Pending, Reason: "Unavailable"}, {State: opensearchv1.Pending, Reason: "ClusterMissing"},
	} {
		u.Generation++ // A status of another generation is written again.
		if err := s.reportWaiting(t.Context(), p, []declaredObject{o}, v); err != nil {
			t.Fatal(err)
		}
		u.Status.Common = written.fields.Common
		if in := toPlanObjects([]declaredObject{o}, "server", nil, nil)[0]; !in.Synced || in.InStep {
			t.Errorf("after %s: got synced %t, in step %t; want true, false", v.Reason, in.Synced, in.InStep)
		}
	}
}

func TestDeletedObjectWithoutRecordKeepsFinalizer(t *testing.T) {
	world, told := newFeededState(t), &statusMessages{of: map[string]string{}}
	s := &statusReporter{writer: told, schemas: newForeignSchemas(prometheus.NewRegistry(), slog.New(slog.DiscardHandler)), rivals: newForeignWriterDetector(nil, world.isLiveUID)}
	b := bindingWith(nil)
	b.Status.ProvisionedRoles, b.DeletionTimestamp = nil, &metav1.Time{}
	o := declaredObject{Change: event.Change{Key: world.key("one"), UID: "uid-one"}, value: b}
	p := controller.NewRequest(world.view, Key{Kind: plan.Mappings}, false)
	d := kindDecision{outcomes: map[string]objectOutcome{"uid-one": {Verdict: plan.SyncedVerdict()}}}
	if err := s.writeResults(t.Context(), p, syncInput{cluster: clusterOf("old"), server: "server", objects: []declaredObject{o}}, d, applyResult{}); err != nil {
		t.Fatal(err)
	}
	if got := told.of["uid-one"]; !strings.HasPrefix(got, recordMissing) {
		t.Errorf("got %q, want %q", got, recordMissing)
	}
}
