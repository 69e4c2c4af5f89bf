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

func (n *statusMessages) RefreshAsStale(context.Context, kinds.Kind, event.Change) error { return nil }

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

// While a change without an answer may still create something for an object, the object is neither released nor forgotten.
func TestDeletedObjectIsKeptWhileWriteIsUncertain(t *testing.T) {
	left := []opensearchv1.Provisioned{{Role: "logs", Users: []string{"ben"}}}
	contested, young := syncInput{contest: 1}, syncInput{young: 1}
	for name, c := range map[string]struct {
		w    syncInput
		is   objectDecision
		kind plan.EntityKind
		gone bool
		// held means that the object stays. cleared means that the gone object needs no further attention.
		held, cleared bool
	}{
		"sure":                          {kind: plan.Users},
		"contested":                     {w: contested, kind: plan.Users, held: true},
		"contested, entries may come":   {w: contested, is: objectDecision{after: left}, kind: plan.Mappings, held: true},
		"contested, all entries went":   {w: contested, kind: plan.Mappings},
		"in a young term":               {w: young, kind: plan.Users},
		"gone, sure":                    {kind: plan.Users, gone: true, cleared: true},
		"gone, unseen":                  {is: objectDecision{unseen: true}, kind: plan.Users, gone: true, cleared: true},
		"gone, contested":               {w: contested, kind: plan.Users, gone: true},
		"gone, contested, may come":     {w: contested, is: objectDecision{after: left}, kind: plan.Mappings, gone: true},
		"gone, contested, all went":     {w: contested, kind: plan.Mappings, gone: true, cleared: true},
		"gone in a young term, and was": {w: young, kind: plan.Users, gone: true, cleared: true},
		"gone in a young term, unseen":  {w: young, is: objectDecision{unseen: true}, kind: plan.Users, gone: true},
		"gone in a young term, may come": {
			w: young, is: objectDecision{unseen: true, mayAppear: left}, kind: plan.Mappings, gone: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			world, told := newFeededState(t), &statusMessages{of: map[string]string{}}
			s := &statusReporter{writer: told, schemas: newForeignSchemas(prometheus.NewRegistry(), slog.New(slog.DiscardHandler)), rivals: newForeignWriterDetector(nil, world.isLiveUID), clear: world.markCleared}
			value := opensearchv1.DeclaredObject(userNamed("anna"))
			if c.kind == plan.Mappings {
				b := bindingWith(nil)
				b.Status.ProvisionedRoles = nil
				value = b
			}
			value.SetDeletionTimestamp(&metav1.Time{})
			value.CommonStatus().ManagedCluster, value.CommonStatus().ManagedServer = "uid-search", "server"
			value.CommonStatus().State = opensearchv1.Created
			o := declaredObject{Change: event.Change{Key: world.key("anna"), UID: string(value.GetUID()), Deleted: c.gone}, value: value}
			c.w.cluster, c.w.server, c.w.objects = clusterOf("uid-search"), "server", []declaredObject{o}
			p := controller.NewRequest(world.view, Key{Kind: c.kind}, false)
			c.is.Verdict = plan.SyncedVerdict()
			d := kindDecision{decisions: map[string]objectDecision{o.UID: c.is}}
			if err := s.writeResults(t.Context(), p, c.w, d, applyResult{}); err != nil {
				t.Fatal(err)
			}
			held := told.of[o.UID] == plan.UnansweredVerdict().Message
			if held != c.held || held == (len(p.Results()) == 1) || world.applyCleared(&o) == c.cleared {
				t.Errorf("got results %v and status %q; want held %t, cleared %t", p.Results(), told.of[o.UID], c.held, c.cleared)
			}
			if b, ok := o.value.(*opensearchv1.OpensearchUserRoleBinding); c.gone && !c.cleared && ok && !slices.EqualFunc(b.Status.Provisioned, left, func(a, b opensearchv1.Provisioned) bool { return a.Role == b.Role && slices.Equal(a.Users, b.Users) }) {
				t.Errorf("got record %+v, want %+v", b.Status.Provisioned, left)
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

func (w *wroteFields) RefreshAsStale(context.Context, kinds.Kind, event.Change) error { return nil }

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
	d := kindDecision{decisions: map[string]objectDecision{"uid-one": {Verdict: plan.SyncedVerdict()}}}
	if err := s.writeResults(t.Context(), p, syncInput{cluster: clusterOf("old"), server: "server", objects: []declaredObject{o}}, d, applyResult{}); err != nil {
		t.Fatal(err)
	}
	if got := told.of["uid-one"]; !strings.HasPrefix(got, recordMissing) {
		t.Errorf("got %q, want %q", got, recordMissing)
	}
}
