//go:build integration

package opensearchsync_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
)

// failCalls returns a fault that fails calls with a prefix.
func failCalls(prefix string) testenv.Fault {
	return func(_ context.Context, op string) error {
		if strings.HasPrefix(op, prefix) {
			return errors.New("the answer is lost")
		}
		return nil
	}
}

// A write of the previous leader takes effect after the new leader has written the same object, and after the object was
// deleted.
func TestLateWriteOfPreviousLeaderLeavesNothing(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.write("roles/watchers", map[string]any{"cluster_permissions": []string{"cluster_monitor"}})
	running := b.serve()
	b.search.FailBefore(failCalls("PATCH "))
	b.bind("one", "watchers", "anna")
	b.role("later")
	b.awaitCalls(nil, map[string]int{"PATCH rolesmapping": 1, "PATCH roles": 1})
	running.Stop()
	b.AwaitNoCalls()
	b.search.FailBefore(nil)
	b.put(kinds.OpenSearchRoles(), "later", spec(map[string]any{"clusterPermissions": []any{"cluster_composite_ops"}}))

	b.serve()
	b.state(kinds.OpenSearchRoles(), "later", "CREATED", "")
	b.going(kinds.OpenSearchBindings(), "one")
	b.going(kinds.OpenSearchRoles(), "later")
	b.absent("roles/later")
	b.absent("rolesmapping/watchers")
	b.write("rolesmapping/watchers", map[string]any{"users": []string{"anna"}})
	b.write("roles/later", map[string]any{"cluster_permissions": []string{"cluster_monitor"}})
	b.gone(kinds.OpenSearchBindings(), "one")
	b.gone(kinds.OpenSearchRoles(), "later")
	b.absent("rolesmapping/watchers")
	b.absent("roles/later")
}

// Another client writes a list between the listing and the write, and OpenSearch reports a conflict.
func TestConflictKeepsEntryOfOtherClient(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serveWith(shortenWaits)
	b.write("roles/shared", map[string]any{"cluster_permissions": []string{"cluster_monitor"}})
	b.write("rolesmapping/shared", map[string]any{"hosts": []string{"h"}})
	var conflict atomic.Bool
	b.search.FailBefore(func(_ context.Context, op string) error {
		if strings.HasPrefix(op, "PATCH rolesmapping") && conflict.CompareAndSwap(false, true) {
			b.write("rolesmapping/shared", map[string]any{"hosts": []string{"h"}, "users": []string{"kim"}})
			return testenv.InjectedResponseError(http.StatusConflict, `{"status":"CONFLICT","message":"version conflict"}`)
		}
		return nil
	})
	b.bind("one", "shared", "anna")
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
	b.mappedTo("shared", "kim", "anna")
	b.remove(kinds.OpenSearchBindings(), "one")
	b.mappedTo("shared", "kim")
}

// A change got no answer at the begin of an outage, and takes effect after the outage. Meanwhile its objects were deleted.
func TestChangeFromBeforeOutageLeavesNothing(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.write("roles/watchers", map[string]any{"cluster_permissions": []string{"cluster_monitor"}})
	settling := 4 * time.Second
	b.serveWith(func(c *opensearchsync.Config) {
		shortenWaits(c)
		c.Takeover.SettlingTime = settling
	})
	b.role("before")
	b.state(kinds.OpenSearchRoles(), "before", "CREATED", "")
	<-time.After(settling) // The change must not come from the first seconds of the leader.
	before := b.search.CallsByOp()
	b.search.FailBefore(failCalls("PATCH "))
	b.bind("one", "watchers", "anna")
	b.role("later")
	b.awaitCalls(before, map[string]int{"PATCH rolesmapping": 1, "PATCH roles": 1})
	b.search.FailBefore(failCalls(""))
	calls := total(b.search.CallsByOp())
	b.going(kinds.OpenSearchBindings(), "one")
	b.going(kinds.OpenSearchRoles(), "later")
	<-time.After(settling + time.Second)
	if now := total(b.search.CallsByOp()); now == calls {
		t.Error("the service made no call in the outage")
	}
	before = b.search.CallsByOp()
	b.search.FailBefore(nil)
	b.awaitCalls(before, map[string]int{"GET rolesmapping": 1, "GET roles": 2})
	b.write("rolesmapping/watchers", map[string]any{"users": []string{"anna"}})
	b.write("roles/later", map[string]any{"cluster_permissions": []string{"cluster_monitor"}})
	b.gone(kinds.OpenSearchBindings(), "one")
	b.gone(kinds.OpenSearchRoles(), "later")
	b.absent("rolesmapping/watchers")
	b.absent("roles/later")
	b.remove(kinds.OpenSearchRoles(), "before")
}

// What OpenSearch has reserved is not changed. Deleted objects report that it remains, until the reservation ends.
func TestReservedEntitiesHoldDeletedObjects(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	b.connect()
	b.serveWith(func(c *opensearchsync.Config) {
		shortenWaits(c)
		c.DriftInterval = time.Second
	})
	b.role("watchers")
	b.role("alone")
	b.bind("one", "watchers", "anna", "ben")
	b.bind("two", "watchers", "kim")
	b.state(kinds.OpenSearchBindings(), "two", "CREATED", "")
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
	reserve := func(reserved bool) {
		b.write("rolesmapping/watchers", map[string]any{"users": []string{"anna", "ben", "kim"}, "reserved": reserved})
		b.write("roles/alone", map[string]any{"cluster_permissions": []string{"cluster_monitor"}, "reserved": reserved})
	}
	b.state(kinds.OpenSearchRoles(), "alone", "CREATED", "")
	reserve(true)
	b.state(kinds.OpenSearchRoles(), "alone", "IGNORED", "it is reserved by OpenSearch")
	b.bind("two", "watchers", "lee")
	b.state(kinds.OpenSearchBindings(), "two", "ERROR", "with entries of this object")
	b.going(kinds.OpenSearchBindings(), "one")
	b.going(kinds.OpenSearchRoles(), "alone")
	b.held(kinds.OpenSearchBindings(), "one", "leave it there by the annotation "+forget+"="+b.server())
	b.held(kinds.OpenSearchRoles(), "alone", "OpenSearch has reserved what this object made")
	b.mappedTo("watchers", "anna", "ben", "kim")
	reserve(false)
	b.gone(kinds.OpenSearchBindings(), "one")
	b.gone(kinds.OpenSearchRoles(), "alone")
	b.absent("roles/alone")
	b.mappedTo("watchers", "lee")
	b.remove(kinds.OpenSearchBindings(), "two")
	b.remove(kinds.OpenSearchRoles(), "watchers")
	b.absent("rolesmapping/watchers")
}
