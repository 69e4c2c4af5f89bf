//go:build e2e && nightly

package main

import (
	"testing"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/nemesis"
)

// The main nightly campaign has three NATS servers. This one has the shape of CI, but runs longer and with all its
// possible blows.
func TestSystemWithOneNATSServerConvergesUnderFaults(t *testing.T) {
	cfg := ciCampaign(t)
	cfg.For, cfg.Blows = 5*time.Minute, nemesis.SurvivedFaults()
	requireNoFinding(t, cfg)
}

func TestChangeIsAppliedSoonAlthoughAnyNodeFallsSilent(t *testing.T) {
	c := startChanger(t)
	for name, s := range silences() {
		t.Run(name, func(t *testing.T) {
			for i := range c.system.Nodes {
				c.changeUnder(t, s, i)
			}
		})
	}
}
