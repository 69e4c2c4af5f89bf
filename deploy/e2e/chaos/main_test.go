package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/campaign"
	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/nemesis"
)

func TestOptionsRefuseInvalidSettings(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a blow that is none":            {[]string{"-blows", "kill-services,earthquake"}, "there is no earthquake; -list"},
		"two NATS servers":               {[]string{"-nodes", "2"}, "use 1 or 3"},
		"no replica":                     {[]string{"-replicas", "0"}, "use 1 to 3"},
		"an episode before the first":    {[]string{"-episode", "0"}, "the first is 1"},
		"a blow that takes more servers": {[]string{"-blows", "isolate", "-nodes", "1"}, "use more, or other blows"},
		"a checkout without binaries":    {[]string{"-checkout", t.TempDir()}, "run `make chaos`"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := parseFlags(test.args, t.Output()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("said is %v, want %q", err, test.want)
			}
		})
	}
}

func TestOutcomeIsErrorAfterFindings(t *testing.T) {
	broken := errors.New("no start")
	for name, test := range map[string]struct {
		findings int
		err      error
		want     error
	}{
		"no finding":                 {0, nil, nil},
		"two findings":               {2, nil, errFound},
		"a campaign that cannot run": {0, broken, broken},
	} {
		t.Run(name, func(t *testing.T) {
			report := &campaign.Report{Findings: make([]campaign.Finding, test.findings)}
			if err := findingsError(report, test.err); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func TestListNamesEveryFault(t *testing.T) {
	var out strings.Builder
	if _, list, err := parseFlags([]string{"-list"}, &out); err != nil || !list {
		t.Fatal(list, err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, blow := range nemesis.AllFaults() {
		told := "; survived"
		if blow.Known != "" {
			told = "; NOT survived yet: " + blow.Known
		}
		if len(lines) <= i || !strings.HasPrefix(lines[i], blow.Name+" ") || !strings.HasSuffix(lines[i], told) {
			t.Errorf("of %s is told\n%s", blow.Name, out.String())
		}
	}
}
