package event

import "k8s.io/apimachinery/pkg/util/resourceversion"

// compareResourceVersions compares two versions of one resource. It returns false if a version does not have the
// format that the API server promises (KEP-5504).
func compareResourceVersions(a, b string) (int, bool) {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}
