//go:build compose

package e2e

import "testing"

// TestProfilesRunInContainers starts everything once with both profiles, opensearch and ha, which are independent.
func TestProfilesRunInContainers(t *testing.T) {
	t.Setenv("COMPOSE_PROFILES", "opensearch,ha")
	t.Setenv("ENTAIL_SECRET_NAMESPACES", "default")
	t.Setenv("ENTAIL_STREAM_REPLICAS", "3")
	removeAtEnd(t)
	m := composed(t)
	t.Run("opensearch follows its sample", func(t *testing.T) { openSearchFollowsSample(t, m) })
	t.Run("ha replaces servers and services", func(t *testing.T) { replicasAreReplaced(t, m) })
}
