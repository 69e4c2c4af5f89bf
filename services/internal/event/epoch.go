package event

import (
	"strconv"
	"strings"
)

// An epoch is a part of a cluster's history in which resource versions only grow. The first one has the name of the
// cluster's UID. A cluster that is restored from a backup has lower versions, so another epoch begins: "UID/1" after
// the first restore.
const epochSeparator = "/"

// NextEpoch returns the epoch after the given one of the same cluster.
func NextEpoch(epoch string) string {
	cluster, turn := parseEpoch(epoch)
	return cluster + epochSeparator + strconv.FormatUint(turn+1, 10)
}

// CompareEpochs compares two epochs of one cluster. ok is false if they are of two clusters.
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

// parseEpoch splits an epoch. It reads a text without a number as the first epoch of a cluster.
func parseEpoch(epoch string) (cluster string, turn uint64) {
	if i := strings.LastIndex(epoch, epochSeparator); i >= 0 {
		if turn, err := strconv.ParseUint(epoch[i+1:], 10, 63); err == nil {
			return epoch[:i], turn
		}
	}
	return epoch, 0
}
