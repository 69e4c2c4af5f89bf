//go:build e2e

package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/campaign"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/nemesis"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
)

// checkout is where bin/ and deploy/ are, seen from here.
const checkout = "../../.."

// configured is a campaign on one NATS server and two replicas, with a seed that ENTAIL_CHAOS_SEED may give.
func configured(t *testing.T) campaign.Config {
	t.Helper()
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("ENTAIL_CHAOS_SEED"), strconv.FormatInt(time.Now().UnixNano(), 10)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("to repeat: ENTAIL_CHAOS_SEED=%d", seed)
	return campaign.Config{
		System: system.Config{Checkout: root, Dir: filepath.Join(root, ".tmp", "chaos", t.Name()), Nodes: 1, Replicas: 2},
		Seed:   seed, First: 1, Findings: 1, Settle: 150 * time.Second, Out: t.Output(),
	}
}

func TestWhateverStrikesEverythingEndsUpAsDeclared(t *testing.T) {
	cfg := configured(t)
	var unknown []string
	cfg.Blows, unknown = nemesis.Named([]string{
		nemesis.KillServices, nemesis.KillServers, nemesis.Restart, nemesis.Pause, nemesis.Hold, nemesis.Cut,
	})
	if len(unknown) > 0 {
		t.Fatal(unknown)
	}
	cfg.For = 3 * time.Minute
	report, err := campaign.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Write(t.Output()); err != nil {
		t.Fatal(err)
	}
	for _, finding := range report.Findings {
		t.Errorf("%s", finding)
	}
	if report.Rounds < 3 || report.Operations < 30 || report.Looks == 0 {
		t.Error("that was too little to show anything")
	}
}
