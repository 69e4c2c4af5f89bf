package informer

import (
	"testing"
	"time"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
)

// After NATS lost its data, sequences begin again, so two markers may have the same one.
func TestInformerComparesMarkerOfAnotherStreamWithSameSequence(t *testing.T) {
	of := snapshotScope{"local", event.GroupResource{Resource: "stores"}}
	marker := func(life string, written time.Time) snapshotMarker {
		return snapshotMarker{message: &eventv1.SnapshotMarker{Cluster: of.cluster, Resource: of.kind.Resource, Stream: life}, sequence: 7, written: written}
	}
	begin := time.Unix(1, 0)
	for name, test := range map[string]struct {
		next snapshotMarker
		want bool
	}{
		"the same marker":          {marker("one", begin), true},
		"a marker after data loss": {marker("two", begin.Add(time.Hour)), false},
	} {
		v := New(Config{})
		v.loading = true // So nothing is compared yet.
		before := marker("one", begin)
		before.counted, before.told = true, true
		v.markers[of] = before
		if err := v.storeMarker(t.Context(), test.next.message.GetStream(), test.next); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := v.markers[of]; got.counted != test.want || got.told != test.want {
			t.Errorf("%s: counted is %t, told is %t, want %t", name, got.counted, got.told, test.want)
		}
	}
}
