package webhook

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestFlagsSetWhatIsConfigured(t *testing.T) {
	cfg := Defaults()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	cfg.BindFlags(fs)
	if err := fs.Parse([]string{"--iam-store=access", "--unobserved-targets=trust"}); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil || cfg.Store != "access" || cfg.UnobservedTargets != trust {
		t.Errorf("set were %+v, %v", cfg, err)
	}
}

func TestWrongSettingsAreRefusedByName(t *testing.T) {
	cfg := Defaults()
	cfg.Store, cfg.UnobservedTargets, cfg.NATS.URL = "No Store", "hope", ""
	err := Run(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "--iam-store") || !strings.Contains(err.Error(), "--unobserved-targets") || !strings.Contains(err.Error(), "--nats-url") {
		t.Errorf("refused with %v", err)
	}
}
