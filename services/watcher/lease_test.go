package watcher

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// fakeLeaseServer is an API server whose answers about the Lease the test sets.
type fakeLeaseServer struct {
	resourcelock.Interface

	holder string
	err    error
}

func (a *fakeLeaseServer) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: a.holder}, nil, a.err
}

func (a *fakeLeaseServer) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	return a.err
}

func TestReplicaIsReadyWhileLeaderIsKnown(t *testing.T) {
	resource := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	synctest.Test(t, func(t *testing.T) {
		server := &fakeLeaseServer{holder: "other"}
		l := &observedLease{Interface: server}
		get := func(holder string, err error) {
			server.holder, server.err = holder, err
			_, _, _ = l.Get(t.Context())
		}
		wants := func(text string) {
			t.Helper()
			if err := l.Err(); text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
				t.Errorf("got %v, want %q", err, text)
			}
		}
		wants("the Lease has not been read from the API server yet")
		get("", errors.New("refused"))
		wants("the Lease cannot be read: refused")
		get("other", nil)
		wants("")
		get("", apierrors.NewNotFound(resource, "entail-watcher"))
		wants("no replica leads")
		server.err = nil
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
			t.Fatal(err)
		}
		wants("")
		<-time.After(leaseUnheard)
		server.err = apierrors.NewConflict(resource, "entail-watcher", errors.New("changed"))
		_ = l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"})
		wants("")
		get("", errors.New("timeout"))
		wants("")
		<-time.After(time.Second)
		wants(fmt.Sprintf("the Lease was not read for %s: timeout", leaseUnheard+time.Second))
		get("other", nil)
		wants("")
		server.err = apierrors.NewForbidden(resource, "entail-watcher", errors.New("no right"))
		_ = l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"})
		get("other", nil) // The replica no longer leads, and without the right to write it cannot take over.
		wants("the Lease cannot be written")
		wants("no right")
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
			t.Fatal(err)
		}
		wants("")
	})
}

func TestLeaseNumbersTermsByItsTransitions(t *testing.T) {
	a := &fakeLeaseServer{}
	l := &observedLease{Interface: a}
	if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaderTransitions: 3}); err != nil {
		t.Fatal(err)
	}
	a.err = errors.New("no answer")
	_ = l.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaderTransitions: 4})
	if got := l.currentTerm(); got != 3 {
		t.Errorf("got term %d, want 3", got)
	}
}
