package event

import (
	"strconv"
	"strings"
)

// An epoch is a part of a cluster's history in which resource versions only grow. The first epoch of a cluster is
// named by the cluster's UID. A restore from a backup lowers the versions, so another epoch begins: "UID/1" after the
// first restore.
const epochSeparator = "/"

// NextEpoch returns the epoch that follows the given one.
func NextEpoch(epoch string) string {
	cluster, turn := parseEpoch(epoch)
	return cluster + epochSeparator + strconv.FormatUint(turn+1, 10)
}

// CompareEpochs compares two epochs of one cluster. ok is false if they belong to two clusters.
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

// parseEpoch splits an epoch into cluster and number. A text without a number is the first epoch of a cluster.
func parseEpoch(epoch string) (cluster string, number uint64) {
	if i := strings.LastIndex(epoch, epochSeparator); i >= 0 {
		if number, err := strconv.ParseUint(epoch[i+1:], 10, 63); err == nil {
			return epoch[:i], number
		}
	}
	return epoch, 0
}
