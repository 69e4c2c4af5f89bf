package event

import "k8s.io/apimachinery/pkg/util/resourceversion"

// compareVersions orders two resource versions of one resource; false when they
// are not what the API server promises (KEP-5504).
func compareVersions(a, b string) (int, bool) {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}
