package opensearchsync

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
)

// connectionThat returns a connection whose last run took some time and ended with an error or nil.
func connectionThat(took time.Duration, err error) *clusterConnection {
	c := &clusterConnection{}
	c.recordRun(took, search.NewAllowance(false), err)
	return c
}

func TestSlowClustersLeaveWorkersForOthers(t *testing.T) {
	l := newLanes(8)
	for i := range 4 { // A cluster that has not answered yet counts as slow.
		c := map[bool]*clusterConnection{true: connectionThat(slowAfter+1, nil), false: {}}[i%2 == 0]
		if _, _, err := l.enterLanes(t.Context(), c); err != nil {
			t.Fatalf("slow cluster %d: %v", i, err)
		}
	}
	slow := connectionThat(slowAfter+1, nil)
	if _, _, err := l.enterLanes(t.Context(), slow); !errors.Is(err, errBusy) || !fault.IsUnavailable(err) {
		t.Errorf("got %v for the fifth slow cluster of eight workers, want %v", err, errBusy)
	}
	for range 20 {
		if large, _, err := l.enterLanes(t.Context(), connectionThat(time.Second, nil)); err != nil || large {
			t.Errorf("got %v for a quick cluster, large: %t", err, large)
		}
	}
	slow.recordRun(time.Second, search.NewAllowance(false), nil)
	if _, _, err := l.enterLanes(t.Context(), slow); err != nil {
		t.Errorf("got %v for a cluster that is quick again", err)
	}
}

func TestFewRunsHoldLargeListsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, tooLarge := newLanes(16), fmt.Errorf("listing: %w", search.ErrLarge)
		one, two, three := connectionThat(0, tooLarge), connectionThat(0, tooLarge), connectionThat(0, tooLarge)
		large, leave, err := l.enterLanes(t.Context(), one)
		if err != nil || !large {
			t.Fatalf("got %v for the first large run", err)
		}
		if _, _, err := l.enterLanes(t.Context(), one); !errors.Is(err, errBusy) {
			t.Errorf("got %v for a second large run of one cluster, want %v", err, errBusy)
		}
		if _, _, err := l.enterLanes(t.Context(), two); err != nil {
			t.Errorf("got %v for a large run of another cluster", err)
		}
		if _, _, err := l.enterLanes(t.Context(), three); !errors.Is(err, errBusy) {
			t.Errorf("got %v for a third large run, want %v", err, errBusy)
		}
		go func() {
			<-time.After(laneTimeout / 2)
			leave()
		}()
		if _, _, err := l.enterLanes(t.Context(), three); err != nil {
			t.Errorf("got %v for a large run that follows another", err)
		}
		if one.recordRun(0, search.NewAllowance(true), nil); one.large {
			t.Error("a cluster whose lists are small again counts as large")
		}
	})
}
