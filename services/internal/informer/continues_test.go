package informer

import "testing"

func TestInformerOfSeveralClustersResumesAfterReconnect(t *testing.T) {
	for name, test := range map[string]struct {
		position uint64
		want     bool
	}{
		"nothing came behind the last barrier":      {12, true},
		"a change came behind the barriers of both": {13, false},
	} {
		v := New(Config{})
		v.lastBarriers = map[string]clusterBarrier{"a": {sequence: 10}, "b": {sequence: 12}}
		v.consumer, v.position = "before", test.position
		if got := v.recordConsumer("after"); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
		for cluster, p := range v.lastBarriers {
			if test.want && !p.unlinked {
				t.Errorf("%s: cluster %s needs no further barrier", name, cluster)
			}
		}
	}
}
