package nemesis

import "testing"

func TestActiveReplicaHasMostProgress(t *testing.T) {
	counts := func(first, second float64) map[string]float64 {
		return map[string]float64{"tuple-sync-0": first, "tuple-sync-1": second}
	}
	for name, c := range map[string]struct {
		before, now map[string]float64
		want        string
	}{
		"who has done more since":      {counts(90, 10), counts(91, 14), "tuple-sync-1"},
		"who was started anew":         {counts(90, 10), counts(5, 10), "tuple-sync-0"},
		"who alone answers":            {counts(90, 10), map[string]float64{"tuple-sync-1": 10}, "tuple-sync-1"},
		"nobody, and any will do":      {counts(90, 10), counts(90, 10), "tuple-sync-0"},
		"nobody, and nobody is struck": {counts(90, 10), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := busiestReplica(c.before, c.now); got != c.want {
				t.Errorf("active is %q, want %q", got, c.want)
			}
		})
	}
}
