package opensearchsync

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

func TestLockDocumentExcludesRunsOfOneServer(t *testing.T) {
	at := func(uuid string, key, address byte) *clusterConnection {
		return &clusterConnection{identity: search.ClusterIdentity{UUID: uuid, Key: [32]byte{key}}, address: [32]byte{address}}
	}
	first := at("u", 1, 1)
	for name, c := range map[string]struct {
		kind  plan.EntityKind
		other *clusterConnection
		waits bool
	}{
		"the same connection":                    {plan.Mappings, first, true},
		"the same address":                       {plan.Mappings, at("u", 2, 1), true},
		"the same key":                           {plan.Mappings, at("u", 1, 0), true},
		"another kind":                           {plan.Users, first, false},
		"a server with another UUID":             {plan.Mappings, at("v", 1, 1), false},
		"the UUID, with another address and key": {plan.Mappings, at("u", 2, 2), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d documentLocks
				unlock, err := d.lockDocument(t.Context(), plan.Mappings, first)
				if err != nil {
					t.Fatal(err)
				}
				entered := make(chan func(), 1)
				go func() {
					leave, err := d.lockDocument(t.Context(), c.kind, c.other)
					if err != nil {
						t.Error(err)
					}
					entered <- leave
				}()
				synctest.Wait()
				if waits := len(entered) == 0; waits != c.waits {
					t.Errorf("got waits %t, want %t", waits, c.waits)
				}
				unlock()
				(<-entered)()
				if len(d.locks) > 0 {
					t.Errorf("got %d locks left, want none", len(d.locks))
				}
			})
		})
	}
}

func TestLockDocumentEndsWithContext(t *testing.T) {
	var d documentLocks
	to := &clusterConnection{identity: search.ClusterIdentity{UUID: "u", Key: [32]byte{1}}, address: [32]byte{1}}
	unlock, _ := d.lockDocument(t.Context(), plan.Users, to)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.lockDocument(ctx, plan.Users, to); err == nil {
		t.Error("got a lock, want the error of the context")
	}
	if unlock(); len(d.locks) > 0 {
		t.Errorf("got %d locks left, want none", len(d.locks))
	}
}
