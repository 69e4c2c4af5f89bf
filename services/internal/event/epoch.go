package event

import (
	"strconv"
	"strings"
)

// An epoch is a stretch of a cluster's history within which resource versions only grow. The first
// one is named by the cluster's UID. A cluster that is restored from a backup goes back in its
// versions and so begins another, "UID/1" after the first time.
const epochSeparator = "/"

// NextEpoch names the epoch after the given one of the same cluster.
func NextEpoch(epoch string) string {
	cluster, turn := parseEpoch(epoch)
	return cluster + epochSeparator + strconv.FormatUint(turn+1, 10)
}

// CompareEpochs orders two epochs of one cluster; ok is false when they are of two.
func CompareEpochs(a, b string) (order int, ok bool) {
	clusterA, turnA := parseEpoch(a)
	clusterB, turnB := parseEpoch(b)
	switch {
	case clusterA != clusterB:
		return 0, false
	case turnA < turnB:
		return -1, true
	case turnA > turnB:
		return 1, true
	}
	return 0, true
}

// parseEpoch takes what is no epoch for the first one of a cluster of that name.
func parseEpoch(epoch string) (cluster string, turn uint64) {
	if i := strings.LastIndex(epoch, epochSeparator); i >= 0 {
		if turn, err := strconv.ParseUint(epoch[i+1:], 10, 63); err == nil {
			return epoch[:i], turn
		}
	}
	return epoch, 0
}
