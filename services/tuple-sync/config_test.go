package tuplesync

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestConfigIsSetByFlags(t *testing.T) {
	cfg := Defaults()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	cfg.BindFlags(fs)
	if err := fs.Parse([]string{"--openfga-target=openfga:8081", "--openfga-max-tuples=50", "--workers=3", "--allow-member-tuples-enabled"}); err != nil {
		t.Fatal(err)
	}
	if cfg.OpenFGA.Target != "openfga:8081" || cfg.OpenFGA.MaxTuples != 50 || cfg.Workers != 3 || !cfg.AllowMemberTuples {
		t.Errorf("set were %+v", cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfigValidateNamesInvalidSettings(t *testing.T) {
	cfg := Defaults()
	cfg.OpenFGA.Target, cfg.Workers = "nowhere", 0
	cfg.AllowMemberTuples, cfg.AccountType = true, "an account"
	cfg.IAMStore, cfg.UnobservedTargets, cfg.RemovedTuplesRetention = "?", "guess", -1
	cfg.ListLimits.Results = 0
	err := Run(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "--openfga-target") || !strings.Contains(err.Error(), "--workers") ||
		!strings.Contains(err.Error(), "--account-type") || !strings.Contains(err.Error(), "--iam-store") ||
		!strings.Contains(err.Error(), "--unobserved-targets") || !strings.Contains(err.Error(), "--removed-tuples-retention") ||
		!strings.Contains(err.Error(), "--openfga-list-max-results") {
		t.Errorf("refused with %v", err)
	}
}
