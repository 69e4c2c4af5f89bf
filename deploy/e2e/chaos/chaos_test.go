//go:build e2e

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/campaign"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/checker"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/nemesis"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
)

// ciMinutes and ciRounds are the minimum duration and number of rounds of the CI campaign. The fourth round ends with a
// replay.
const ciMinutes, ciRounds = 2 * time.Minute, 4

// ciCampaign returns the campaign that CI runs: blows on one NATS server and two replicas of every service.
// ENTAIL_CHAOS_SEED repeats a seed.
func ciCampaign(t *testing.T) campaign.Config {
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
		Seed:   seed, First: 1, Findings: 1, For: ciMinutes, Rounds: ciRounds, Settle: 150 * time.Second, Out: t.Output(),
		Blows: blowsNamed(t, nemesis.KillServices, nemesis.KillServers, nemesis.Restart, nemesis.Pause, nemesis.Hold,
			nemesis.Cut, nemesis.Restore, nemesis.LoseTail),
	}
}

func blowsNamed(t *testing.T, names ...string) []nemesis.Fault {
	t.Helper()
	blows, unknown := nemesis.FaultsByName(names)
	if len(unknown) > 0 {
		t.Fatalf("blows %v do not exist", unknown)
	}
	return blows
}

// runCampaign runs a campaign and returns its report. The campaign itself prints each finding.
func runCampaign(t *testing.T, cfg campaign.Config) *campaign.Report {
	t.Helper()
	report, err := campaign.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.WriteText(t.Output()); err != nil {
		t.Fatal(err)
	}
	return report
}

// requireNoFinding runs a campaign, and requires no finding, enough rounds, operations and observations, and that most
// planted wrong allows are found.
func requireNoFinding(t *testing.T, cfg campaign.Config) {
	t.Helper()
	report := runCampaign(t, cfg)
	if len(report.Findings) > 0 {
		t.Fatal("the campaign has findings; see above")
	}
	answers := report.Answers
	for what, n := range map[string][2]int{
		"rounds": {report.Rounds, ciRounds}, "operations": {report.Operations, 30}, "replays": {report.Replays, 1}, "looks of the monitor": {report.Looks, 1},
		"allows": {answers.Allows, 1000}, "planted allows": {answers.Planted, 1}, "found planted allows": {answers.Found, (answers.Planted + 1) / 2},
	} {
		if n[0] < n[1] {
			t.Errorf("got %d %s, want %d at least", n[0], what, n[1])
		}
	}
}

// report fails the test with a line that CI recognizes.
func report(t *testing.T, v checker.Violation) {
	t.Helper()
	_, _ = fmt.Fprintln(t.Output(), v.ReportText())
	t.Fail()
}

// Each run rewinds NATS in both ways, so that no run leaves revocations between backup and restore untested.
func TestSystemConvergesUnderFaults(t *testing.T) {
	cfg := ciCampaign(t)
	cfg.Opening = blowsNamed(t, nemesis.Restore, nemesis.LoseTail)
	requireNoFinding(t, cfg)
}
