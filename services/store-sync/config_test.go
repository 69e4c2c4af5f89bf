package storesync

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestConfigIsSetByFlags(t *testing.T) {
	cfg := Defaults()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	cfg.BindFlags(fs)
	if cfg.Limits.Types != 100 || cfg.Limits.Bytes != 256<<10 {
		t.Errorf("default limits are %+v", cfg.Limits)
	}
	if err := fs.Parse([]string{"--max-model-types=150", "--max-model-bytes=500000", "--openfga-target=openfga:8081"}); err != nil {
		t.Fatal(err)
	}
	if cfg.Limits.Types != 150 || cfg.Limits.Bytes != 500_000 || cfg.OpenFGA.Target != "openfga:8081" {
		t.Errorf("set were %+v, %+v", cfg.Limits, cfg.OpenFGA)
	}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfigValidateNamesInvalidSettings(t *testing.T) {
	cfg := Defaults()
	cfg.Limits.Types, cfg.OpenFGA.Target = -1, "nowhere"
	err := Run(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "--max-model-types -1") || !strings.Contains(err.Error(), "--openfga-target") {
		t.Errorf("refused with %v", err)
	}
}
